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

	// readEchoAfter is the same for output of at most maxEcho bytes that only writes and moves, as the echo of
	// keys does, outside of a control sequence: it changes nothing that has to be restored, and is not worth two
	// wake-ups of the process.
	readEchoAfter = time.Second
	maxEcho       = 256

	// maxUnread bounds the output in bytes that waits. Who writes more reads it.
	maxUnread = 1 << 20
)

// A follower knows the state of a terminal from its output, which it reads a moment after the
// terminal has it.
type follower struct {
	timer *time.Timer

	mu      sync.Mutex
	unread  []byte
	parsing int       // bytes that reading took out of unread and has not read yet
	readAt  time.Time // when the timer fires, or zero
	split   bool      // what was read last ends within a control sequence

	reading sync.Mutex // is locked before mu, and guards what follows
	screen  *screen.Screen
	read    []byte // memory for unread
	undone  []byte // what has restored the terminal when changed was called last
}

// newFollower returns a follower of a terminal that was just reset. It calls changed some time after
// output came, unless that was read at once and another undo does not follow from it.
func newFollower(changed func()) *follower {
	f := &follower{screen: newScreen(wire.Size{Cols: 80, Rows: 24})}
	f.timer = time.AfterFunc(time.Hour, func() {
		f.mu.Lock()
		f.readAt = time.Time{}
		f.mu.Unlock()
		f.ask(func(s *screen.Screen) { f.undone = s.Undo() })
		changed()
	})
	f.timer.Stop()
	return f
}

// newScreen returns the screen of a terminal. It keeps no scrollback.
func newScreen(size wire.Size) *screen.Screen {
	return screen.New(int(size.Cols), int(size.Rows), screen.Limits{Lines: 1})
}

// Write takes output that the terminal has got.
func (f *follower) Write(b []byte) (int, error) {
	f.mu.Lock()
	f.unread = append(f.unread, b...)
	wait := readAfter
	if !f.split && f.parsing == 0 && len(f.unread) <= maxEcho && onlyMoves(b) {
		wait = readEchoAfter
	}
	if at := time.Now().Add(wait); f.readAt.IsZero() || at.Before(f.readAt) {
		f.readAt = at
		f.timer.Reset(wait)
	}
	full := len(f.unread) > maxUnread
	f.mu.Unlock()
	if full {
		f.ask(func(*screen.Screen) {})
	}
	return len(b), nil
}

// onlyMoves reports whether output certainly has no control functions but those that move the cursor and erase.
func onlyMoves(b []byte) bool {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\x0e' || c == '\x0f' || c == 0xc2: // other character sets, and the first byte of C1 controls
			return false
		case c == '\x1b':
			rest, csi := bytes.CutPrefix(b[i+1:], []byte("["))
			rest = bytes.TrimLeft(rest, "0123456789;")
			if !csi || len(rest) == 0 || strings.IndexByte("ABCDGHJKd", rest[0]) < 0 {
				return false
			}
		}
	}
	return true
}

// ask calls do with a screen that has read all output.
func (f *follower) ask(do func(*screen.Screen)) {
	f.reading.Lock()
	defer f.reading.Unlock()
	f.mu.Lock()
	b := f.unread
	f.unread, f.parsing = f.read[:0], len(b)
	f.mu.Unlock()
	if f.read = b; len(b) > 2*maxUnread {
		f.read = nil
	}
	f.screen.Write(b)
	f.mu.Lock()
	f.parsing, f.split = 0, !f.screen.Ground()
	f.mu.Unlock()
	if len(b) > 0 && bytes.Equal(f.screen.Undo(), f.undone) {
		f.sleep()
	}
	do(f.screen)
}

// sleep stops the timer if all output is read.
func (f *follower) sleep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unread) == 0 {
		f.readAt = time.Time{}
		f.timer.Stop()
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
