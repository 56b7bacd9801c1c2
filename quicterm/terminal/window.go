package terminal

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/picture"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A window draws a part of a session's screen on the terminal's alternate screen. That part follows the cursor,
// or is where the user has moved it. Output of the session reaches the terminal only as characters and
// colours and, if the user types for the session, as modes of the keyboard and the mouse.
type window struct {
	display *display
	hint    func(size wire.Size, column, row int, whole bool) string // says what part of the screen is shown
	input   bool                                                     // the user types for the session

	mouse     atomic.Pointer[mouseShift] // for places in mouse reports, nil if there are none
	disturbed atomic.Bool                // a text of ours is on the terminal

	mu     sync.Mutex
	screen *screen.Screen
	size   wire.Size // of the terminal
	x, y   int       // what column and row of the session the window begins with; y < 0 is the scrollback
	panned bool      // the user has moved it
	drawn  []string  // the rows of the window as they were drawn, nil if not known
	modes  string    // of keyboard and mouse, that were set
	title  string    // that was drawn
	timer  *time.Timer
	due    bool      // the timer is set
	last   time.Time // when it was drawn
	held   time.Time // since when a text of ours is shown, or zero
	since  uint64    // rows that had scrolled off when the screen began
	over   bool
}

func newWindow(
	d *display, size wire.Size, s *screen.Screen, hint func(size wire.Size, column, row int, whole bool) string,
) *window {
	w := &window{display: d, size: size, screen: s, since: s.Scrolled(), hint: hint}
	w.timer = newTimer(w.draw)
	d.texts.Store(false)
	return w
}

// Write takes output of the session.
func (w *window) Write(b []byte) (int, error) {
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
func (w *window) restart(snapshot []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cols, rows := w.screen.Size()
	w.screen = screen.New(cols, rows, screen.Limits{})
	w.screen.Write(snapshot)
	w.since = w.screen.Scrolled()
	w.laterLocked()
}

// contents returns a snapshot of the screen as it is in another size, with what has scrolled off since it
// began. The window has been stopped.
func (w *window) contents(size wire.Size) []byte {
	w.resize(size)
	return w.screen.Snapshot(screen.Snapshot{Lines: int(w.screen.Scrolled() - w.since)})
}

func (w *window) setHint(hint func(size wire.Size, column, row int, whole bool) string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hint = hint
	w.laterLocked()
}

// resize takes a new size of the session's terminal.
func (w *window) resize(size wire.Size) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.screen.Resize(int(size.Cols), int(size.Rows))
	w.laterLocked()
}

// laterLocked has the screen drawn soon.
func (w *window) laterLocked() {
	if !w.due && !w.over {
		w.due = true
		w.timer.Reset(max(drawSoon, drawAfter-time.Since(w.last)))
	}
}

// redraw has all drawn anew, soon. It does not wait for the terminal.
func (w *window) redraw() {
	w.disturbed.Store(true)
	w.timer.Reset(drawSoon)
}

// draw draws what has changed. It blocks while the terminal takes no output.
func (w *window) draw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due, w.last = false, time.Now()
	if w.over {
		return
	}
	if w.heldLocked() {
		return
	}
	if w.disturbed.Swap(false) {
		w.drawn = nil
	}
	cols, height := int(w.size.Cols), w.placeLocked()
	b := []byte("\x1b[?25l")
	if w.drawn == nil {
		b = append(b, "\x1b[?1049h\x1b[m"+home+"\x1b[2J"...)
		w.drawn = make([]string, w.size.Rows)
	}
	for r := range w.drawn {
		row := ""
		if r < height {
			row = string(picture.AppendColumns(nil, w.screen.Row(w.y+r), w.x, w.x+cols))
		} else if r == height {
			row = w.hintLocked(height)
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
	b = w.appendInputLocked(b)
	if x, y := w.cursorLocked(); !w.screen.CursorHidden() && x >= w.x && x < w.x+cols && y >= w.y && y < w.y+height {
		b = fmt.Appendf(b, "\x1b[%d;%dH\x1b[?25h", y-w.y+1, x-w.x+1)
	}
	w.display.Write(b)
}

// heldLocked reports whether a text of ours is shown, and draws the window later then.
func (w *window) heldLocked() bool {
	if !w.display.texts.Load() {
		w.held = time.Time{}
		return false
	}
	if w.held.IsZero() {
		w.held = w.last
	}
	left := textTime - w.last.Sub(w.held)
	if left <= 0 {
		w.display.texts.Store(false)
		w.held, w.drawn = time.Time{}, nil
		return false
	}
	w.due = true
	w.timer.Reset(left)
	return true
}

// hintLocked returns the row that says what part of the screen is shown, if the window has room for it.
func (w *window) hintLocked(height int) string {
	cols, rows := w.screen.Size()
	whole := cols <= int(w.size.Cols) && rows <= height
	hint := w.hint(w.sizeLocked(), w.x, w.y, whole)
	if hint == "" {
		return ""
	}
	return "\x1b[7m" + wire.Printable(hint, int(w.size.Cols)) + "\x1b[m"
}

// appendInputLocked appends what makes the terminal send what the program wants.
func (w *window) appendInputLocked(b []byte) []byte {
	if !w.input {
		return b
	}
	var shift *mouseShift
	if w.screen.ReportsMouse() {
		size := w.sizeLocked()
		shift = &mouseShift{x: w.x, y: w.y, cols: int(size.Cols), rows: int(size.Rows)}
	}
	w.mouse.Store(shift)
	modes := string(w.screen.InputModes())
	if modes == w.modes {
		return b
	}
	if w.modes != "" {
		b = append(b, screen.UsualInput...)
	}
	w.modes = modes
	return append(b, modes...)
}

// cursorLocked returns the cell of the cursor.
func (w *window) cursorLocked() (x, y int) {
	x, y = w.screen.Cursor()
	cols, _ := w.screen.Size()
	return min(x, cols-1), y
}

func (w *window) sizeLocked() wire.Size {
	cols, rows := w.screen.Size()
	return wire.Size{Cols: uint16(cols), Rows: uint16(rows)}
}

// placeLocked chooses what part of the screen the window shows, and returns how many rows of it. The row
// below them has a hint, for which there is always room if it is a part.
func (w *window) placeLocked() (height int) {
	cols, rows := w.screen.Size()
	width, height := int(w.size.Cols), int(w.size.Rows)
	if cols <= width && rows <= height && !w.panned {
		w.x, w.y = 0, 0
		return rows
	}
	height = max(height-1, 1)
	if !w.panned {
		x, y := w.cursorLocked()
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

// setSize takes a new size of the terminal.
func (w *window) setSize(size wire.Size) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.size, w.drawn = size, nil
	w.display.texts.Store(false)
	w.timer.Reset(drawSoon)
}

// stop ends drawing.
func (w *window) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}
