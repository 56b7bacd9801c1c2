//go:build linux

// Package screen is the screen of a client's terminal: it draws what the client writes
// with a terminal emulator, and says when something came to be seen.
package screen

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	emulator "github.com/quicterm/quicterm/quicterm/screen"
)

// Rows and Columns are those of the terminals of package rig.
const (
	Rows    = 24
	Columns = 80
)

const (
	// floodBytes is how many bytes at once scroll the screen faster than it can be read.
	// It is then drawn once in floodInterval, as terminals do.
	floodBytes    = 16 << 10
	floodInterval = 5 * time.Millisecond

	// maxWaiting is how many bytes wait to be drawn before Write blocks.
	maxWaiting = 1 << 20
)

// A Screen is written to by a client.
type Screen struct {
	mu      sync.Mutex
	changed *sync.Cond // of mu
	waiting []byte     // to be drawn
	latest  time.Time  // when the last of it came
	first   []byte     // of all that was written, for error messages
	closed  bool
	watches []*watch
	fresh   bool // a watch was added
	copy    io.Writer

	terminal *emulator.Screen // of draw
	done     chan struct{}
}

// A watch waits for something to be seen.
type watch struct {
	sees func(v View) bool
	seen chan time.Time // when what shows it had come; capacity 1
}

// A View is what the screen shows at a moment. It is valid within the call that gets it.
type View struct{ Terminal *emulator.Screen }

// New returns a screen that is drawn until the measurement or test ends.
func New(t rig.T) *Screen {
	s := &Screen{
		first:    make([]byte, 0, 300),
		copy:     io.Discard,
		terminal: NewTerminal(),
		done:     make(chan struct{}),
	}
	s.changed = sync.NewCond(&s.mu)
	go s.draw()
	t.Cleanup(s.close)
	return s
}

// NewTerminal returns a terminal emulator of the screen's size.
func NewTerminal() *emulator.Screen { return emulator.New(Columns, Rows, emulator.Limits{}) }

// Write takes what the client writes, and the time. It blocks while too much is not
// drawn yet.
func (s *Screen) Write(b []byte) (int, error) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) > maxWaiting && !s.closed {
		s.changed.Wait()
	}
	s.waiting = append(s.waiting, b...)
	s.latest = now
	s.first = append(s.first, b[:min(len(b), cap(s.first)-len(s.first))]...)
	s.changed.Broadcast()
	return s.copy.Write(b)
}

// CopyTo writes what the client writes to w too, from now on. w replaces the one before.
func (s *Screen) CopyTo(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copy = w
}

// draw draws what was written, and then asks the watches.
func (s *Screen) draw() {
	defer close(s.done)
	var b []byte
	for {
		s.mu.Lock()
		for len(s.waiting) == 0 && !s.fresh && !s.closed {
			s.changed.Wait()
		}
		if s.closed {
			s.mu.Unlock()
			return
		}
		b, s.waiting = s.waiting, b[:0]
		at := s.latest
		s.fresh = false
		s.changed.Broadcast()
		s.mu.Unlock()
		flood := len(b) > floodBytes
		drawn := b
		if flood {
			drawn = lastScreens(b)
		}
		s.terminal.Write(drawn)
		s.mu.Lock()
		s.askLocked(at)
		s.mu.Unlock()
		if flood {
			time.Sleep(floodInterval)
		}
	}
}

// lastScreens returns output that makes the same screen without the lines that scroll
// out of it: all up to the end of the first line, and the last lines.
func lastScreens(b []byte) []byte {
	if bytes.IndexByte(b, 0x1b) >= 0 {
		return b
	}
	head := bytes.IndexByte(b, '\n') + 1
	rest := b[head:]
	at := len(rest)
	for range 2*Rows + 1 {
		if at = bytes.LastIndexByte(rest[:at], '\n'); at < 0 {
			return b
		}
	}
	return append(b[:head], rest[at+1:]...)
}

// askLocked asks the watches what they see. At is when the last of it came.
func (s *Screen) askLocked(at time.Time) {
	v := View{s.terminal}
	open := s.watches[:0]
	for _, w := range s.watches {
		if w.sees(v) {
			w.seen <- at
		} else {
			open = append(open, w)
		}
	}
	clear(s.watches[len(open):])
	s.watches = open
}

// Watch returns a channel that gets one value: when what makes sees true was written. If
// it is true already, that is the time of the last write.
func (s *Screen) Watch(sees func(v View) bool) <-chan time.Time {
	w := &watch{sees: sees, seen: make(chan time.Time, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches = append(s.watches, w)
	s.fresh = true
	s.changed.Broadcast()
	return w.seen
}

// WatchText is Watch for a text anywhere on the screen.
func (s *Screen) WatchText(text string) <-chan time.Time {
	return s.Watch(func(v View) bool { return v.shows(text) })
}

// Await returns what a watch got, or the zero time if it gets nothing until then.
func Await(seen <-chan time.Time, until time.Time) time.Time {
	select {
	case at := <-seen:
		return at
	default:
	}
	select {
	case at := <-seen:
		return at
	case <-time.After(time.Until(until)):
		return time.Time{}
	}
}

// close ends draw and waits for it.
func (s *Screen) close() {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	<-s.done
}

// First returns the first bytes that were written.
func (s *Screen) First() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.first)
}

// At returns the character at a place, or a space. Rows and columns count from 0.
func (v View) At(row, column int) rune {
	for _, r := range v.Terminal.Row(row).Cell(column).Text {
		return r
	}
	return ' '
}

// Row returns the text of a row without blanks at its end.
func (v View) Row(n int) string { return v.Terminal.Row(n).Text() }

// shows reports whether a row contains a text.
func (v View) shows(text string) bool {
	for n := range Rows {
		if strings.Contains(v.Row(n), text) {
			return true
		}
	}
	return false
}
