package screen

import "github.com/quicterm/quicterm/quicterm/screen/marks"

// scrollUp scrolls the scroll region. What leaves the main screen at its top goes to the scrollback.
func (s *Screen) scrollUp(n int) {
	if s.buf == s.main && s.buf.top == 0 && !s.margins() {
		for range n {
			s.history.push(s, s.buf.row(0))
			s.stay = nil
			s.shift(0, 1, s.eraser())
		}
		return
	}
	s.shift(s.buf.top, n, s.eraser())
}

// scrollRegion is SU: what leaves is lost.
func (s *Screen) scrollRegion(n int) {
	s.shift(s.buf.top, n, s.eraser())
	s.lose()
}

// scrollDown is SD, which leaves blanks without background.
func (s *Screen) scrollDown(n int) {
	s.shift(s.buf.top, -n, 0)
	s.lose()
}

// shift moves the rows from top to the end of the scroll region up by n, or down by -n. Blanks come in.
func (s *Screen) shift(top, n int, c cell) {
	b := s.buf
	height := b.bottom - top + 1
	n = max(min(n, height), -height)
	if s.margins() {
		for i := range height {
			y := top + i
			if n < 0 {
				y = b.bottom - i
			}
			s.copyColumns(y, y+n, top, c)
		}
		return
	}
	b.rotate(top, b.bottom, n)
	from, to := b.bottom-n+1, b.bottom
	if n < 0 {
		from, to = top, top-n-1
	}
	for y := from; y <= to; y++ {
		s.renew(b.row(y), c)
	}
}

func (s *Screen) renew(r *row, c cell) {
	r.fill(c)
	r.wrapped, r.mark, r.line = false, marks.Row{}, s.newLine()
}

// copyColumns copies the columns between the margins from one row to another, or blanks them
// if the source is above top or below the scroll region.
func (s *Screen) copyColumns(to, from, top int, c cell) {
	b := s.buf
	dst := b.row(to)
	dst.split(b.left, c)
	dst.split(b.right+1, c)
	if from < top || from > b.bottom {
		dst.erase(b.left, b.right+1, c)
		return
	}
	src := b.row(from)
	src.split(b.left, c)
	src.split(b.right+1, c)
	copy(dst.cells[b.left:b.right+1], src.cells[b.left:b.right+1])
}

// insertLines is IL.
func (s *Screen) insertLines(n int) { s.shiftLines(-n) }

// deleteLines is DL.
func (s *Screen) deleteLines(n int) { s.shiftLines(n) }

// shiftLines moves the rows from that of the cursor on up by n, or down by -n.
func (s *Screen) shiftLines(n int) {
	s.clamp()
	s.inserting()
	if s.inRegion() {
		s.shift(s.y, n, s.eraser())
		s.x = s.buf.left
	}
}

func (s *Screen) inRegion() bool {
	return s.y >= s.buf.top && s.y <= s.buf.bottom && s.x >= s.buf.left && s.x <= s.buf.right
}

// eachRow calls f for the rows of the scroll region, which then continue no lines.
func (s *Screen) eachRow(f func(r *row, end int, c cell)) {
	if s.y < s.buf.top || s.y > s.buf.bottom {
		return
	}
	c := s.eraser()
	for y := s.buf.top; y <= s.buf.bottom; y++ {
		r := s.buf.row(y)
		f(r, s.buf.right+1, c)
		s.unwrap(r)
	}
}

// scrollLeft is SL.
func (s *Screen) scrollLeft(n int) {
	s.eachRow(func(r *row, end int, c cell) { r.remove(s.buf.left, end, n, c) })
}

// scrollRight is SR.
func (s *Screen) scrollRight(n int) {
	s.eachRow(func(r *row, end int, c cell) { r.insert(s.buf.left, end, n, c) })
}

// insertColumns is DECIC.
func (s *Screen) insertColumns(n int) {
	s.clamp()
	s.eachRow(func(r *row, end int, c cell) { r.insert(s.x, end, n, c) })
}

// deleteColumns is DECDC.
func (s *Screen) deleteColumns(n int) {
	s.clamp()
	s.eachRow(func(r *row, end int, c cell) { r.remove(s.x, end, n, c) })
}

// setRegion is DECSTBM, with rows counted from 1.
func (s *Screen) setRegion(top, bottom int) {
	if bottom == 0 || bottom > s.rows {
		bottom = s.rows
	}
	if top = max(top, 1); top < bottom {
		s.buf.top, s.buf.bottom = top-1, bottom-1
		s.moveTo(0, 0)
	}
}

// setMargins is DECSLRM, with columns counted from 1.
func (s *Screen) setMargins(left, right int) {
	if right == 0 || right > s.cols {
		right = s.cols
	}
	if left = max(left, 1); left < right {
		s.buf.left, s.buf.right = left-1, right-1
		s.moveTo(0, 0)
	}
}
