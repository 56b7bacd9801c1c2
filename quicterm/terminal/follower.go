package terminal

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// readAfter is how long output waits to be read, so that neither keys nor floods wait for
	// that, and a flood is read in large parts.
	readAfter = 10 * time.Millisecond

	// maxUnread bounds the output in bytes that waits. Who writes more reads it.
	maxUnread = 1 << 20

	// readSize is about how many bytes are read at once.
	readSize = 4 << 10
)

// A follower knows the state of a terminal from its output, which it reads a moment after the
// terminal has it.
type follower struct {
	timer *time.Timer

	mu      sync.Mutex
	unread  []byte
	waiting bool // the timer runs

	reading sync.Mutex // is locked before mu, and guards what follows
	screen  *screen.Screen
	read    []byte // memory for unread
}

// newFollower returns a follower of a terminal that was just reset. It calls changed after it
// has read something of its own accord.
func newFollower(changed func()) *follower {
	f := &follower{screen: newScreen(wire.Size{Cols: 80, Rows: 24})}
	f.timer = time.AfterFunc(time.Hour, func() {
		f.ask(func(*screen.Screen) {})
		changed()
	})
	f.timer.Stop()
	return f
}

// newScreen returns the screen of a terminal. Nobody asks for its scrollback.
func newScreen(size wire.Size) *screen.Screen {
	return screen.New(int(size.Cols), int(size.Rows), screen.Limits{Lines: 1})
}

// Write takes output that the terminal has got.
func (f *follower) Write(b []byte) (int, error) {
	f.mu.Lock()
	f.unread = append(f.unread, b...)
	if !f.waiting {
		f.waiting = true
		f.timer.Reset(readAfter)
	}
	full := len(f.unread) > maxUnread
	f.mu.Unlock()
	if full {
		f.ask(func(*screen.Screen) {})
	}
	return len(b), nil
}

// ask calls do with a screen that has read all output.
func (f *follower) ask(do func(*screen.Screen)) {
	f.reading.Lock()
	defer f.reading.Unlock()
	f.mu.Lock()
	b := f.unread
	f.unread, f.waiting = f.read[:0], false
	f.mu.Unlock()
	if f.read = b; len(b) > 2*maxUnread {
		f.read = nil
	}
	f.feed(b)
	do(f.screen)
}

// feed makes the screen read b. Of many lines in a row, with nothing but text and colours, it
// reads only the last ones, which are more than a screen.
func (f *follower) feed(b []byte) {
	for len(b) > 0 {
		run := 0
		if f.screen.Ground() {
			run = linesEnd(b)
			b, run = f.lastLines(b, run)
		}
		n := min(run+readSize, len(b))
		f.screen.Write(b[:n])
		b = b[n:]
	}
}

// lastLines returns b, of which the first run bytes are lines, without most of these, and how
// long the others are. They leave the screen in the same state.
func (f *follower) lastLines(b []byte, run int) ([]byte, int) {
	cols, rows := f.screen.Size()
	enough := 4 * cols * rows
	if run <= 2*enough {
		return b, run
	}
	window := b[run-2*enough : run-enough]
	line := bytes.Index(window, []byte("\r\n"))
	if line < 0 || bytes.Count(b[run-enough:run], []byte("\n")) < rows {
		return b, run
	}
	from := run - 2*enough + line
	if bytes.IndexByte(b[:from], esc) >= 0 { // colours must begin with the usual ones
		from = max(bytes.LastIndex(b[:from], []byte("\x1b[0m")), bytes.LastIndex(b[:from], []byte("\x1b[m")), 0)
	}
	return b[from:], run - from
}

const esc = 0x1b

// linesEnd returns how many bytes at the start of b change nothing but the text on the screen and
// how the next is shown. It stops early at a byte that may be more than that: one that shifts the
// character set, or begins a C1 control character in UTF-8.
func linesEnd(b []byte) int {
	end := len(b)
	for _, c := range []byte{0x0e, 0x0f, 0xc2} {
		if n := bytes.IndexByte(b[:end], c); n >= 0 {
			end = n
		}
	}
	for n := 0; ; {
		next := bytes.IndexByte(b[n:end], esc)
		if next < 0 {
			return end
		}
		n += next
		i := n + 2
		for i < end && (b[i]-'0' < 10 || b[i] == ';') {
			i++
		}
		if i >= end || b[n+1] != '[' || b[i] != 'm' && b[i] != 'K' { // SGR or EL
			return n
		}
		n = i + 1
	}
}

// ground reports whether the output ends outside of a control sequence and of a character.
func (f *follower) ground() (ground bool) {
	f.ask(func(s *screen.Screen) { ground = s.Ground() })
	return ground
}

// continuation returns the output since it ended there last, or the beginning of that.
func (f *follower) continuation() (raw []byte) {
	f.ask(func(s *screen.Screen) { raw = bytes.Clone(s.Continuation()) })
	return raw
}

// undo returns what brings the terminal back to its usual state.
func (f *follower) undo() (undo []byte) {
	f.ask(func(s *screen.Screen) { undo = s.Undo() })
	return undo
}

// onEmptyLine reports whether the cursor is at the start of a row that shows nothing.
func (f *follower) onEmptyLine() (empty bool) {
	f.ask(func(s *screen.Screen) {
		x, y := s.Cursor()
		row := s.Row(y)
		empty = x == 0
		for x := 0; empty && x < row.Len(); x++ {
			empty = strings.TrimSpace(row.Cell(x).Text) == ""
		}
	})
	return empty
}

// reset makes the screen that of a terminal that was just reset.
func (f *follower) reset() {
	f.ask(func(s *screen.Screen) {
		cols, rows := s.Size()
		f.screen = newScreen(wire.Size{Cols: uint16(cols), Rows: uint16(rows)})
	})
}

// stop ends reading of its own accord.
func (f *follower) stop() { f.timer.Stop() }
