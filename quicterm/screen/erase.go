package screen

import "github.com/quicterm/quicterm/quicterm/screen/marks"

// eraseRange blanks cells of a row: with selective set, those that are not protected.
func (s *Screen) eraseRange(r *row, start, end int, selective bool) {
	if selective {
		r.eraseUnprotected(start, end, s.eraser(), s.isProtected)
		return
	}
	r.erase(start, end, s.eraser())
}

func (s *Screen) isProtected(c cell) bool {
	return s.styles.get(c.style()).Attributes&Protected != 0
}

// eraseRow blanks a row, which then continues no line.
func (s *Screen) eraseRow(y int, selective bool) {
	r := s.buf.row(y)
	s.eraseRange(r, 0, s.cols, selective)
	s.unwrap(r)
}

// eraseRows blanks the rows from one up to another, with their marks. That of the cursor keeps its own until all are
// erased: a shell may draw its prompt again, and tell of it only once.
func (s *Screen) eraseRows(from, to int, selective bool) {
	for y := from; y < to; y++ {
		s.eraseRow(y, selective)
		if !selective {
			s.buf.row(y).mark = marks.Row{}
		}
	}
}

// eraseDisplay is ED and DECSED.
func (s *Screen) eraseDisplay(what int, selective bool) {
	if s.pen.Bg != 0 {
		s.lose() // a terminal that has scrolled erases other rows
	}
	switch what {
	case 0:
		s.eraseLine(0, selective)
		if s.x == 0 && s.y == 0 && !selective {
			s.cleared(true)
		}
		s.eraseRows(s.y+1, s.rows, selective)
	case 1:
		r := s.buf.row(s.y)
		s.eraseRange(r, 0, s.x+1, selective)
		s.unwrap(r)
		if s.x+1 >= s.cols && s.y+1 < s.rows {
			s.unwrap(s.buf.row(s.y + 1))
		}
		s.eraseRows(0, s.y, selective)
	case 2:
		s.eraseRows(0, s.rows, selective)
		if !selective {
			s.cleared(true)
		}
	case 3:
		if !s.Alternate() {
			s.ClearHistory()
		}
	}
}

// eraseLine is EL and DECSEL.
func (s *Screen) eraseLine(what int, selective bool) {
	r := s.buf.row(s.y)
	switch what {
	case 0:
		s.eraseRange(r, s.x, s.cols, selective)
		if s.x == 0 {
			s.unwrap(r)
		}
	case 1:
		s.eraseRange(r, 0, s.x+1, selective)
	case 2:
		s.eraseRow(s.y, selective)
	}
	if !selective && (what == 0 && s.x == 0 || what == 2) {
		s.cleared(false)
	}
}

// eraseCells is ECH.
func (s *Screen) eraseCells(n int) {
	s.clamp()
	s.buf.row(s.y).erase(s.x, s.x+min(n, s.cols), s.eraser())
}

// insertCells is ICH.
func (s *Screen) insertCells(n int) {
	s.clamp()
	if end := s.buf.right + 1; s.x >= s.buf.left && s.x < end {
		s.buf.row(s.y).insert(s.x, end, n, s.eraser())
	}
}

// deleteCells is DCH.
func (s *Screen) deleteCells(n int) {
	s.clamp()
	if end := s.buf.right + 1; s.x >= s.buf.left && s.x < end {
		s.buf.row(s.y).remove(s.x, end, n, s.eraser())
	}
}

// alignmentPattern is DECALN.
func (s *Screen) alignmentPattern() {
	style := s.pen
	style.Link, style.Underline, style.UnderlineColor = 0, min(style.Underline, SingleUnderline), 0
	c := newCell('E', s.styles.id(style))
	for y := range s.rows {
		r := s.buf.row(y)
		r.fill(c)
		s.unwrap(r)
	}
	s.moveTo(0, 0)
}

// protect sets whether selective erase leaves the next characters.
func (s *Screen) protect(on bool) {
	pen := s.pen
	pen.Attributes &^= Protected
	if on {
		pen.Attributes |= Protected
	}
	s.setPen(pen)
}
