package screen

import "unsafe"

// Memory returns about how many bytes of memory the screens and the scrollback take.
func (s *Screen) Memory() int {
	cells := 0
	for _, b := range []*buffer{s.main, s.alt} {
		if b != nil {
			cells += len(b.ring) * s.cols
		}
	}
	return cells*int(unsafe.Sizeof(cell(0))) + s.history.size()
}

// Scrolled returns how many rows have left the main screen at its top, also those that are not
// in the scrollback any more.
func (s *Screen) Scrolled() uint64 { return s.history.pushed }
