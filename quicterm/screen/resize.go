package screen

// Resize changes the size.
func (s *Screen) Resize(cols, rows int) {
	cols, rows = clampSize(cols, rows)
	if cols == s.cols && rows == s.rows {
		return
	}
	for _, b := range []*buffer{s.main, s.alt} {
		if b != nil {
			b.resize(cols, rows)
		}
	}
	s.tabs = append(s.tabs[:min(cols, s.cols)], defaultTabs(cols)[min(cols, s.cols):]...)
	s.cols, s.rows = cols, rows
	s.clamp()
}

func (b *buffer) resize(cols, rows int) {
	ring := newBuffer(cols, rows).ring
	for y := range min(rows, len(b.ring)) {
		old := b.row(y)
		copy(ring[y].cells, old.cells)
		ring[y].line, ring[y].wrapped = old.line, old.wrapped
	}
	b.ring, b.first = ring, 0
	b.top, b.bottom, b.left, b.right = 0, rows-1, 0, cols-1
}
