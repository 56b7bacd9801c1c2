package screen

// scrollUp scrolls the scroll region. What leaves the main screen at its top goes to the scrollback.
func (s *Screen) scrollUp(n int) {
	if s.buf == s.main && s.buf.top == 0 && !s.margins() {
		for range n {
			s.history.push(s, s.buf.row(0))
			s.stay = nil
			s.shiftUp(0, 1, s.eraser())
		}
		return
	}
	s.shiftUp(s.buf.top, n, s.eraser())
}

// scrollRegion is SU: what leaves is lost.
func (s *Screen) scrollRegion(n int) {
	s.shiftUp(s.buf.top, n, s.eraser())
	s.lose()
}

// scrollDown is SD, which leaves blanks without background.
func (s *Screen) scrollDown(n int) {
	s.shiftDown(s.buf.top, n, 0)
	s.lose()
}

// shiftUp moves the rows from top to the end of the scroll region up.
func (s *Screen) shiftUp(top, n int, c cell) {
	b := s.buf
	n = min(n, b.bottom-top+1)
	if s.margins() {
		for y := top; y <= b.bottom; y++ {
			s.copyColumns(y, y+n, c)
		}
		return
	}
	b.rotate(top, b.bottom, n)
	for y := b.bottom - n + 1; y <= b.bottom; y++ {
		s.renew(b.row(y), c)
	}
}

// shiftDown moves the rows from top to the end of the scroll region down.
func (s *Screen) shiftDown(top, n int, c cell) {
	b := s.buf
	n = min(n, b.bottom-top+1)
	if s.margins() {
		for y := b.bottom; y >= top; y-- {
			s.copyColumns(y, y-n, c)
		}
		return
	}
	b.rotate(top, b.bottom, -n)
	for y := top; y < top+n; y++ {
		s.renew(b.row(y), c)
	}
}

// renew makes a row a blank line.
func (s *Screen) renew(r *row, c cell) {
	r.fill(c)
	r.wrapped, r.line = false, s.newLine()
}

// copyColumns copies the columns between the margins from one row to another, or blanks them
// if the source is not in the scroll region.
func (s *Screen) copyColumns(to, from int, c cell) {
	b := s.buf
	dst := b.row(to)
	dst.split(b.left, c)
	dst.split(b.right+1, c)
	if from < b.top || from > b.bottom {
		dst.erase(b.left, b.right+1, c)
		return
	}
	src := b.row(from)
	src.split(b.left, c)
	src.split(b.right+1, c)
	copy(dst.cells[b.left:b.right+1], src.cells[b.left:b.right+1])
}

// insertLines is IL.
func (s *Screen) insertLines(n int) {
	s.clamp()
	s.inserting()
	if s.inRegion() {
		s.shiftDown(s.y, n, s.eraser())
		s.x = s.buf.left
	}
}

// deleteLines is DL.
func (s *Screen) deleteLines(n int) {
	s.clamp()
	s.inserting()
	if s.inRegion() {
		s.shiftUp(s.y, n, s.eraser())
		s.x = s.buf.left
	}
}

// inRegion reports whether the cursor is in the scroll region.
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
