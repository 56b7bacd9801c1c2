package terminal

import (
	"bytes"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// beginWindow brings the terminal into its usual state, for a window. What is written until endWindow is not
// the program's.
func (d *display) beginWindow() {
	d.endReplay()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.windowed.Store(true)
	d.beneath = d.seen.now().Snapshot(screen.Snapshot{})
	d.beneathSize = d.size
	d.resetPainterLocked()
	d.cancelSequenceLocked()
	d.undoLocked()
}

// endWindow takes the window away and shows a snapshot of the program's screen. What follows is the program's
// output, which may be old.
func (d *display) endWindow(snapshot []byte, replay bool) {
	if !d.uncover(snapshot) {
		d.showScreen(snapshot, false)
	}
	d.windowed.Store(false)
	d.setReplay(replay)
}

// uncover takes the window away if what is beneath it is the program's screen still: then the scrollback gets nothing.
func (d *display) uncover(snapshot []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	beneath := d.beneath
	d.beneath = nil
	if beneath == nil || !bytes.Equal(snapshot, beneath) || d.size != d.beneathSize {
		return false
	}
	// The window began with Undo. If that has undone more than these modes, all is drawn anew.
	cols, rows := int(d.size.Cols), int(d.size.Rows)
	s, usual := screen.New(cols, rows, screen.Limits{}), screen.New(cols, rows, screen.Limits{})
	s.Write(beneath)
	modes := s.InputModes()
	usual.Write(modes)
	if !bytes.Equal(s.Undo(), usual.Undo()) {
		return false
	}
	d.resetPainterLocked()
	d.undoLocked()
	d.out.Write(modes)
	d.seen.reset()
	d.seen.Write(beneath)
	d.seen.now().Displace()
	return true
}
