package screen

import (
	"slices"
	"unsafe"
)

// A stay is the main screen with its scrollback as they were in a size, before they were resized: wrapping lines
// anew loses what is cut off, what the scrollback has no room for, and where the screen began. As long as nothing
// has changed since then, each further resize begins from there, and the same size brings all of it back.
type stay struct {
	cols, rows int
	ring       []row // nothing changes their cells any more
	first      int
	x, y       int
	saved      cursor
	history    history

	// The screen after the last resize.
	cells   []cell
	wrapped []bool
	now     buffer // its cursors
}

// leave returns the stay that a resize of the main screen ends.
func (s *Screen) leave() *stay {
	b := s.main
	return &stay{
		cols: s.cols, rows: s.rows, ring: b.ring, first: b.first, x: b.x, y: b.y, saved: b.saved, history: s.history,
	}
}

// comeBack makes the main screen and the scrollback what they were.
func (v *stay) comeBack(s *Screen) {
	b := s.main
	b.ring, b.first, b.x, b.y = v.ring, v.first, v.x, v.y
	b.saved.x, b.saved.y = v.saved.x, v.saved.y
	s.history = v.history
}

// resized records what the main screen is after a resize.
func (v *stay) resized(b *buffer) {
	v.cells, v.wrapped = v.cells[:0], v.wrapped[:0]
	for y := range b.ring {
		v.cells = append(v.cells, b.row(y).cells...)
		v.wrapped = append(v.wrapped, b.row(y).wrapped)
	}
	v.now = buffer{x: b.x, y: b.y, saved: b.saved}
}

// unchanged reports whether the main screen is still what it was after the last resize. A program that has drawn
// the same again, as a shell does with its prompt, has changed nothing.
func (v *stay) unchanged(s *Screen) bool {
	b := s.main
	if v == nil || s.history.pushed != v.history.pushed || b.x != v.now.x || b.y != v.now.y ||
		b.saved.x != v.now.saved.x || b.saved.y != v.now.saved.y {
		return false
	}
	cells := v.cells
	for y := range b.ring {
		r := b.row(y)
		if r.wrapped != v.wrapped[y] || !slices.Equal(r.cells, cells[:len(r.cells)]) {
			return false
		}
		cells = cells[len(r.cells):]
	}
	return true
}

func (v *stay) memory() int {
	if v == nil {
		return 0
	}
	return (v.cols*v.rows+len(v.cells))*int(unsafe.Sizeof(cell(0))) + v.history.size()
}
