package terminal

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/picture"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// drawAfter is how long output of a session that is watched waits to be drawn, together with
// what follows.
const drawAfter = 20 * time.Millisecond

// A Watch shows the screen of a session that its user only watches. That screen has a size of its
// own: of a larger one the terminal shows a part, which follows the cursor or which the user moves
// with the arrow keys. Output of the session reaches the terminal only as characters and colours.
type Watch struct {
	display *display
	clipped func(size wire.Size, column, row int) string // says what part of the screen is shown

	mu     sync.Mutex
	screen *screen.Screen
	window wire.Size // of the terminal
	x, y   int       // what column and row of the session the window begins with; y < 0 is the scrollback
	panned bool      // the user has moved it
	drawn  []string  // the rows of the window as they were drawn, nil if not known
	title  string    // that was drawn
	timer  *time.Timer
	due    bool // the timer is set
	over   bool
}

// Watch returns a way to show a session, in place of Streams: its Session is to be run.
func (t *Terminal) Watch() *Watch {
	return newWatch(t.display, t.Size(), screen.New(80, 24, screen.Limits{}), t.cfg.Messages.Clipped)
}

func newWatch(d *display, window wire.Size, s *screen.Screen, clipped func(wire.Size, int, int) string) *Watch {
	w := &Watch{display: d, window: window, screen: s, clipped: clipped}
	w.timer = time.AfterFunc(time.Hour, w.draw)
	w.timer.Stop()
	return w
}

// Streams returns where the session's output and events are to go.
func (w *Watch) Streams() client.Streams {
	d := w.display
	return client.Streams{
		Stdout:   w,
		Replayed: d.endReplay,
		Changed:  d.setLink,
		Lost: func(g session.Gap) {
			d.notice(d.messages.Gap(g, false))
			w.restart(g.Snapshot)
		},
		Began:   w.restart,
		Resized: w.resize,
	}
}

// Write takes output of the session.
func (w *Watch) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.screen.Scrolled()
	w.screen.Write(b)
	if w.panned && w.y < 0 { // what the user reads stays where it is
		w.y -= int(w.screen.Scrolled() - before)
	}
	w.laterLocked()
	return len(b), nil
}

// restart shows a snapshot in place of what the screen shows.
func (w *Watch) restart(snapshot []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cols, rows := w.screen.Size()
	w.screen = screen.New(cols, rows, screen.Limits{})
	w.screen.Write(snapshot)
	w.laterLocked()
}

// resize takes a new size of the session's terminal.
func (w *Watch) resize(size wire.Size) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.screen.Resize(int(size.Cols), int(size.Rows))
	w.laterLocked()
}

// laterLocked has the screen drawn soon.
func (w *Watch) laterLocked() {
	if !w.due && !w.over {
		w.due = true
		w.timer.Reset(drawAfter)
	}
}

// draw draws what has changed. It blocks while the terminal takes no output.
func (w *Watch) draw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due = false
	if w.over {
		return
	}
	cols, height := int(w.window.Cols), w.placeLocked()
	b := []byte("\x1b[?25l")
	if w.drawn == nil {
		b = append(b, "\x1b[?1049h\x1b[m"+home+"\x1b[2J"...)
		w.drawn = make([]string, w.window.Rows)
	}
	for r := range w.drawn {
		row := ""
		if r < height {
			row = string(picture.AppendColumns(nil, w.screen.Row(w.y+r), w.x, w.x+cols))
		} else if hint := w.clipped(w.sizeLocked(), w.x, w.y); len(hint) <= cols {
			row = "\x1b[7m" + hint + "\x1b[m"
		}
		if row != w.drawn[r] {
			b = fmt.Appendf(b, "\x1b[%dH\x1b[K%s", r+1, row)
			w.drawn[r] = row
		}
	}
	if title := w.screen.Title(); title != w.title {
		w.title = title
		b = fmt.Appendf(b, "\x1b]2;%s\x1b\\", wire.Printable(title, len(title)))
	}
	if x, y := w.screen.Cursor(); x >= w.x && x < w.x+cols && y >= w.y && y < w.y+height {
		b = fmt.Appendf(b, "\x1b[%d;%dH\x1b[?25h", y-w.y+1, x-w.x+1)
	}
	w.display.Write(b)
}

func (w *Watch) sizeLocked() wire.Size {
	cols, rows := w.screen.Size()
	return wire.Size{Cols: uint16(cols), Rows: uint16(rows)}
}

// placeLocked chooses what part of the screen the window shows, and returns how many rows of it.
// The last row of the window has a hint if it is a part.
func (w *Watch) placeLocked() (height int) {
	cols, rows := w.screen.Size()
	width, height := int(w.window.Cols), int(w.window.Rows)
	if cols <= width && rows <= height && !w.panned {
		w.x, w.y = 0, 0
		return height
	}
	height = max(height-1, 1)
	if !w.panned {
		x, y := w.screen.Cursor()
		if x < w.x || x >= w.x+width {
			w.x = x - width/2
		}
		if y < w.y || y >= w.y+height {
			w.y = y - height + 1
		}
		w.y = max(w.y, 0)
	}
	above := 0
	if !w.screen.Alternate() {
		above = w.screen.Lines()
	}
	w.x = max(0, min(w.x, cols-width))
	w.y = max(-above, min(w.y, max(0, rows-height)))
	return height
}

// pans are the keys that move the window over the screen: by columns and by parts of the window's
// height. Others let it follow the cursor again.
var pans = map[string]struct{ dx, dy, pages int }{
	"\x1b[A": {dy: -1}, "\x1bOA": {dy: -1},
	"\x1b[B": {dy: 1}, "\x1bOB": {dy: 1},
	"\x1b[C": {dx: 4}, "\x1bOC": {dx: 4},
	"\x1b[D": {dx: -4}, "\x1bOD": {dx: -4},
	"\x1b[5~": {pages: -1},
	"\x1b[6~": {pages: 1},
}

// typed handles keys. It reports whether the user leaves.
func (w *Watch) typed(b []byte) (leave bool) {
	const ctrlC = 3
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(b) > 0 {
		n := 1
		if end := bytes.IndexByte(b[1:], '\x1b'); b[0] == '\x1b' {
			if n = len(b); end >= 0 {
				n = end + 1
			}
		}
		key := string(b[:n])
		b = b[n:]
		if pan, ok := pans[key]; ok {
			w.panned = true
			w.x += pan.dx
			w.y += pan.dy + pan.pages*int(w.window.Rows)/2
		} else {
			w.panned = false
		}
		leave = leave || strings.IndexByte(key, ctrlC) >= 0
	}
	w.drawn = nil // a text of ours may be on the window
	w.laterLocked()
	return leave
}

// setWindow takes a new size of the terminal.
func (w *Watch) setWindow(size wire.Size) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.window, w.drawn = size, nil
	w.laterLocked()
}

// Session returns the session for Run. What is typed moves the window; Ctrl-C and the escapes that
// end a session leave it.
func (w *Watch) Session(s *client.Session) Session {
	if size := s.Size(); size.Cols > 0 && size.Rows > 0 {
		w.resize(size)
	}
	return watched{s, w}
}

// A watched session takes no input. The server would ignore it.
type watched struct {
	*client.Session
	watch *Watch
}

func (s watched) Run(ctx context.Context) (int, error) {
	defer s.watch.stop()
	return s.Session.Run(ctx)
}

// stop ends drawing.
func (w *Watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

func (s watched) TryWrite(b []byte) (int, uint64, error) {
	n, err := s.Write(b)
	return n, 0, err
}

func (s watched) Write(b []byte) (int, error) {
	if s.watch.typed(b) {
		s.Leave()
	}
	return len(b), nil
}

func (s watched) Flush()            {}
func (s watched) CloseWrite() error { return nil }
func (s watched) Skip() error       { return nil }
func (s watched) Hangup()           { s.Leave() }

func (s watched) Resize(size wire.Size) error {
	s.watch.setWindow(size)
	return nil
}
