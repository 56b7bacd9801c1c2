//go:build linux

package main

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hinshun/vt10x"

	"github.com/quicterm/quicterm/bench/rig"
)

const (
	screenRows    = 24 // of rig's terminals
	screenColumns = 80

	// flooded is how many bytes come at once where the screen scrolls faster than
	// anybody looks; it is then drawn this seldom, as by terminals.
	flooded   = 16 << 10
	drawEvery = 5 * time.Millisecond

	// undrawn is how many bytes wait to be drawn before the client has to wait.
	undrawn = 1 << 20
)

// A screen is what a client's terminal shows: what the client writes goes through a
// terminal emulator. Those who look at it are told when they see something.
type screen struct {
	mu      sync.Mutex
	changed *sync.Cond // of mu
	waiting []byte     // to be drawn
	latest  time.Time  // when the last of it came
	first   []byte     // of them, to say what is wrong
	closed  bool
	looks   []*look
	asked   bool // somebody has begun to look
	more    io.Writer

	vt   vt10x.Terminal // of draw
	done chan struct{}
}

// A look waits for something to be seen.
type look struct {
	sees func(v view) bool
	seen chan time.Time // when what shows it had come; capacity 1
}

// A view is what the screen shows at a moment. It is valid within the call that it
// is given to.
type view struct{ vt vt10x.Terminal }

// newScreen returns a screen that is drawn until the measurement, or test, ends.
func newScreen(m rig.T) *screen {
	s := &screen{
		first: make([]byte, 0, 300),
		more:  io.Discard,
		vt:    newTerminal(),
		done:  make(chan struct{}),
	}
	s.changed = sync.NewCond(&s.mu)
	go s.draw()
	m.Cleanup(s.close)
	return s
}

func newTerminal() vt10x.Terminal {
	return vt10x.New(vt10x.WithSize(screenColumns, screenRows))
}

// Write takes what the client writes, and the time.
func (s *screen) Write(b []byte) (int, error) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) > undrawn && !s.closed {
		s.changed.Wait()
	}
	s.waiting = append(s.waiting, b...)
	s.latest = now
	s.first = append(s.first, b[:min(len(b), cap(s.first)-len(s.first))]...)
	s.changed.Broadcast()
	return s.more.Write(b)
}

// also has what the client writes written to w too, from now on.
func (s *screen) also(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more = w
}

// draw draws what was written, and asks who looks what they see.
func (s *screen) draw() {
	defer close(s.done)
	var b []byte
	for {
		s.mu.Lock()
		for len(s.waiting) == 0 && !s.asked && !s.closed {
			s.changed.Wait()
		}
		if s.closed {
			s.mu.Unlock()
			return
		}
		b, s.waiting = s.waiting, b[:0]
		at := s.latest
		s.asked = false
		s.changed.Broadcast()
		s.mu.Unlock()
		many := len(b) > flooded
		drawn := b
		if many {
			drawn = lastScreens(b)
		}
		s.vt.Write(drawn)
		s.mu.Lock()
		s.look(at)
		s.mu.Unlock()
		if many {
			time.Sleep(drawEvery)
		}
	}
}

// lastScreens returns what makes the same screen as some output does, without lines
// that scroll out of it: all up to the end of the first line, and the last lines.
func lastScreens(b []byte) []byte {
	if bytes.IndexByte(b, 0x1b) >= 0 {
		return b
	}
	head := bytes.IndexByte(b, '\n') + 1
	rest := b[head:]
	at := len(rest)
	for range 2*screenRows + 1 {
		if at = bytes.LastIndexByte(rest[:at], '\n'); at < 0 {
			return b
		}
	}
	return append(b[:head], rest[at+1:]...)
}

// look asks those who look. It is called with the lock.
func (s *screen) look(at time.Time) {
	v := view{s.vt}
	left := s.looks[:0]
	for _, l := range s.looks {
		if l.sees(v) {
			l.seen <- at
		} else {
			left = append(left, l)
		}
	}
	clear(s.looks[len(left):])
	s.looks = left
}

// watch returns a channel that gets the time when something came to be seen, or the
// time of what was written last if it is seen already.
func (s *screen) watch(sees func(v view) bool) <-chan time.Time {
	l := &look{sees: sees, seen: make(chan time.Time, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks = append(s.looks, l)
	s.asked = true
	s.changed.Broadcast()
	return l.seen
}

// mark is watch for a text that shows anywhere.
func (s *screen) mark(text string) <-chan time.Time {
	return s.watch(func(v view) bool { return v.shows(text) })
}

// close ends drawing.
func (s *screen) close() {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	<-s.done
}

// start returns the first of what was written.
func (s *screen) start() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.first)
}

// at returns the glyph at a place, from 0.
func (v view) at(row, column int) rune { return v.vt.Cell(column, row).Char }

// row returns the text of a row, without blanks at its end.
func (v view) row(n int) string {
	var b strings.Builder
	for x := range screenColumns {
		c := v.at(n, x)
		if c == 0 {
			c = ' '
		}
		b.WriteRune(c)
	}
	return strings.TrimRight(b.String(), " ")
}

// shows reports whether a text is in a row.
func (v view) shows(text string) bool {
	for n := range screenRows {
		if strings.Contains(v.row(n), text) {
			return true
		}
	}
	return false
}
