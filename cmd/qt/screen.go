package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/quicterm"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/vt"
)

// A screen is the terminal's output side: it passes the program's output on, and
// puts words of ours where they do no harm.
type screen struct {
	mu     sync.Mutex
	out    io.Writer
	split  vt.Splitter
	modes  vt.Modes
	strip  *vt.Stripper // while old output is shown
	titled bool         // the title is ours
	words  []byte       // of ours, that wait for the end of a control sequence
	stale  bool         // so does the title
	link   quicterm.Link
	skips  bool // output was asked to be skipped
	tick   *time.Timer
}

func newScreen(out io.Writer, stripping bool) *screen {
	s := &screen{out: out}
	if stripping {
		s.strip = new(vt.Stripper)
	}
	s.tick = time.AfterFunc(time.Hour, s.showLink)
	s.tick.Stop()
	return s
}

// Write shows output of the program.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(b)
	if s.strip != nil {
		b = s.strip.Strip(b)
	}
	return n, s.writeLocked(b)
}

func (s *screen) writeLocked(b []byte) error {
	s.split.Split(b, func([]byte) {}, s.modes.Note)
	_, err := s.out.Write(b)
	if s.split.Ground() {
		s.interject()
	}
	return err
}

// interject writes what had to wait for the end of a control sequence.
func (s *screen) interject() {
	if len(s.words) > 0 {
		s.out.Write(s.words)
		s.words = nil
	}
	if s.stale {
		s.stale = false
		s.showLinkLocked()
	}
}

// live ends the showing of old output.
func (s *screen) live() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strip != nil {
		s.writeLocked(s.strip.Rest())
		s.strip = nil
	}
}

// say shows lines of ours among the program's output.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\r\n")
	if text := fmt.Appendf(nil, "\r\n[qt: %s]\r\n", text); s.split.Ground() {
		s.out.Write(text)
	} else if len(s.words) < maxWords {
		s.words = append(s.words, text...)
	}
}

// skip takes note that output was asked to be skipped.
func (s *screen) skip() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skips = true
}

// lost says that output is missing here.
func (s *screen) lost(g session.Gap) {
	s.mu.Lock()
	why := "output was lost, the server kept no more"
	if s.skips {
		s.skips, why = false, "output was skipped"
	}
	if !s.split.Ground() { // the rest of a control sequence is missing as well
		s.split.Rest()
		s.out.Write([]byte{cancel})
	}
	s.mu.Unlock()
	s.say("%s: %d frames with %d bytes; it goes on at frame %d", why, g.To-g.From+1, g.Bytes, g.To+1)
}

// maxWords is about how many bytes of ours wait: a sequence that does not end is
// broken, and nobody waits for all that was said in it.
const maxWords = 16 << 10

// How long a link may be in doubt before the title says so: most doubts are
// over before anybody has read of them.
const titleAfter = time.Second

// setLink takes note of the state of the link.
func (s *screen) setLink(l quicterm.Link) {
	s.mu.Lock()
	s.link = l
	s.mu.Unlock()
	s.showLink()
}

// showLink puts the state of the link into the title, or the title back.
func (s *screen) showLink() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.showLinkLocked()
}

func (s *screen) showLinkLocked() {
	if !s.split.Ground() {
		s.stale = true
		return
	}
	away := s.link.State > migrate.Live
	if !away && s.link.Backlog == 0 {
		s.tick.Stop()
		s.restoreTitleLocked()
		return
	}
	if left := titleAfter - time.Since(s.link.Since); away && left > 0 && !s.titled {
		s.tick.Reset(left)
		return
	}
	if !s.titled {
		io.WriteString(s.out, "\x1b[22;2t") // push the title
		s.titled = true
	}
	title := fmt.Sprintf("no contact since %s, trying (%d)", s.link.Since.Format(time.TimeOnly), s.link.Attempts)
	if !away {
		title = fmt.Sprintf("%.1f MB to come", float64(s.link.Backlog)/1e6)
	}
	fmt.Fprintf(s.out, "\x1b]2;qt: %s\x1b\\", title)
}

func (s *screen) restoreTitleLocked() {
	if !s.titled {
		return
	}
	s.titled = false
	io.WriteString(s.out, "\x1b[23;2t") // pop it
	s.out.Write(s.modes.Title())
}

// cancel is CAN, which ends a control sequence that is not whole (ECMA-48, 8.3.6).
const cancel = 0x18

// restore leaves the terminal as it was before the program: what that has
// switched on is switched off.
func (s *screen) restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick.Stop()
	if !s.split.Ground() {
		s.split.Rest()
		s.out.Write([]byte{cancel})
	}
	s.stale = false
	s.interject()
	s.restoreTitleLocked()
	s.out.Write(s.modes.Undo())
}
