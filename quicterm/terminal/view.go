package terminal

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A view shows the output of a session in which the user types. It passes the output on to the terminal if that
// has the size that the output is for, or if one of these sizes follows the other: then they differ for a moment only.
// Otherwise it draws a window. The two alternate as the sizes and the owner of the session's size change.
type view struct {
	display *display
	escape  byte // 0 for none

	keys  atomic.Pointer[window] // the window, for the goroutine of the keyboard
	mouse mouseFilter            // of that goroutine

	follow func(s wire.Sizing, own bool) // gives the terminal the session's size, or nil

	mu       sync.Mutex
	terminal bool // the output goes to a terminal
	number   uint64
	session  wire.Sizing // for which the output is
	size     wire.Size   // of the terminal
	window   *window     // nil if the output is passed on
	settled  wire.Sizing // for which the terminal shows the output
	timer    *time.Timer // settles
	news     string      // about the size, to be told
	initial  bool        // the output is from before the attach
	replay   bool        // the output is old
	asked    bool        // the user has asked for the size
}

func newView(d *display, escape byte) *view {
	v := &view{display: d, escape: escape, initial: true, replay: true}
	v.timer = newTimer(func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.settleLocked(nil)
	})
	return v
}

// stop ends drawing.
func (v *view) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.terminal = false
	v.timer.Stop()
	if v.window != nil {
		v.window.stop()
	}
}

// typed returns typed bytes as the session is to get them. It does not wait for the terminal.
func (v *view) typed(b []byte) []byte {
	w := v.keys.Load()
	if w == nil {
		return b
	}
	if v.display.texts.Swap(false) {
		w.redraw()
	}
	shift := w.mouse.Load()
	if shift == nil {
		v.mouse = mouseFilter{}
		return b
	}
	return v.mouse.move(b, *shift)
}

// begin says which client this is, and what the session's and the terminal's size are.
func (v *view) begin(number uint64, session wire.Sizing, size wire.Size, terminal bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.number, v.session, v.size, v.terminal = number, session, size, terminal
	v.settleLocked(nil)
}

// Write shows output of the session.
func (v *view) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.settleLocked(nil)
	if v.window != nil {
		return v.window.Write(b)
	}
	return v.display.Write(b)
}

func (v *view) replaying() { v.setReplay(true) }

func (v *view) replayed() { v.setReplay(false) }

func (v *view) setReplay(replay bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.replay, v.initial = replay, v.initial && replay
	if v.window == nil {
		v.display.setReplay(replay)
	}
}

// began shows the screen as it is.
func (v *view) began(snapshot []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.settleLocked(snapshot)
}

// lost says that output is missing, and shows the screen without it if it is known.
func (v *view) lost(g client.Gap) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.settleLocked(nil)
	if v.window == nil {
		v.display.showGap(g)
		return
	}
	v.display.notice(v.display.gapText(g))
	v.window.restart(g.Snapshot)
}

// hinted takes what the server knows at this place of the output.
func (v *view) hinted(h wire.Hint) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.window == nil {
		v.display.hinted(h)
	}
}

// resized says for which size further output or a snapshot is.
func (v *view) resized(s wire.Sizing) {
	v.mu.Lock()
	defer v.mu.Unlock()
	owned := v.ownsLocked()
	if v.initial && owned && v.follow == nil {
		return // the user wants to have the output from before as it was
	}
	before := v.session
	v.session = s
	if s.Owner != before.Owner && v.follow == nil && !(v.asked && v.ownsLocked()) {
		v.news = sizedText(s, v.ownsLocked(), v.escape)
	}
	v.asked = v.asked && !v.ownsLocked()
	v.timer.Reset(drawSoon) // a snapshot may follow
}

// resize takes a new size of the terminal.
func (v *view) resize(size wire.Size) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.size = size
	if v.follow != nil {
		return
	}
	if v.window != nil || !v.drawsLocked() {
		v.display.setSize(size) // before the output is passed on
	}
	v.settleLocked(nil)
	v.display.setSize(size) // after what the terminal shows was copied
	if v.window != nil {
		v.window.setSize(size)
	}
}

// takes records that the user asks for the size, and returns that of the terminal.
func (v *view) takes() wire.Size {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = !v.ownsLocked()
	return v.size
}

func (v *view) ownsLocked() bool { return v.session.Owner == v.number }

// drawsLocked reports whether a window is to be drawn.
func (v *view) drawsLocked() bool {
	return v.terminal && v.follow == nil && !v.ownsLocked() && v.session.Cols > 0 && v.session.Rows > 0 &&
		(v.session.Cols != v.size.Cols || v.session.Rows != v.size.Rows)
}

// settleLocked begins or ends to draw a window if that is due, and shows a snapshot if there is one.
func (v *view) settleLocked(snapshot []byte) {
	if v.follow != nil && v.session != v.settled {
		v.follow(v.session, v.ownsLocked())
		v.display.setSize(v.session.Size)
	}
	switch draws := v.drawsLocked(); {
	case draws && v.window == nil:
		s := screen.New(int(v.session.Cols), int(v.session.Rows), screen.Limits{})
		if snapshot == nil {
			s = v.display.copyScreen()
			s.Resize(int(v.session.Cols), int(v.session.Rows))
		} else {
			s.Write(snapshot)
		}
		v.display.beginWindow()
		v.window = newWindow(v.display, v.size, s, v.hintLocked())
		v.window.input = true
		v.keys.Store(v.window)
		v.window.draw()
	case draws:
		if v.session != v.settled {
			v.window.resize(v.session.Size)
			v.window.setHint(v.hintLocked())
		}
		if snapshot != nil {
			v.window.restart(snapshot)
		}
	case v.window != nil:
		v.window.stop()
		if snapshot == nil {
			snapshot = v.window.contents(v.session.Size)
		}
		v.window = nil
		v.keys.Store(nil)
		v.display.endWindow(snapshot, v.replay)
	case snapshot != nil:
		v.display.showScreen(snapshot, v.follow != nil)
	}
	if v.session != v.settled {
		v.settled = v.session
		v.display.setSessionSize(v.session.Size)
	}
	if v.news != "" {
		v.display.setTitle(v.news, noticeTime) // not between the lines of the screen, which are to stay as they are
		v.news = ""
	}
}

// hintLocked returns the hint of the window.
func (v *view) hintLocked() func(wire.Size, int, int, bool) string {
	session := v.session
	return func(_ wire.Size, column, row int, whole bool) string {
		return windowText(session, column, row, whole, v.escape)
	}
}
