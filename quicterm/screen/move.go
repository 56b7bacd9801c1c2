package screen

// margins reports whether the scroll region does not have the whole width.
func (s *Screen) margins() bool { return s.buf.left > 0 || s.buf.right < s.cols-1 }

// rightEdge returns the column after the last one that characters reach.
func (s *Screen) rightEdge() int {
	if s.x <= s.buf.right+1 {
		return s.buf.right + 1
	}
	return s.cols
}

// leftEdge returns the column where CR goes and where a wrapped line continues.
func (s *Screen) leftEdge() int {
	if s.x > s.buf.left {
		return s.buf.left
	}
	return 0
}

// clamp moves the cursor onto the screen: in origin mode into the scroll region.
func (s *Screen) clamp() {
	left, right, top, bottom := 0, s.cols-1, 0, s.rows-1
	if s.modes&modeOrigin != 0 {
		left, right, top, bottom = s.buf.left, s.buf.right, s.buf.top, s.buf.bottom
	}
	s.x = min(max(s.x, left), right)
	s.y = min(max(s.y, top), bottom)
}

// moveTo moves the cursor: in origin mode, relative to the scroll region.
func (s *Screen) moveTo(x, y int) {
	if s.modes&modeOrigin != 0 {
		x += s.buf.left
		y += s.buf.top
	}
	s.x, s.y = x, y
	s.clamp()
	s.aligned()
	s.jumped()
}

// moveToColumn moves the cursor to a column, counted from 1.
func (s *Screen) moveToColumn(n int) {
	s.x = n - 1
	if s.modes&modeOrigin != 0 {
		s.x += s.buf.left
	}
	s.clamp()
	s.aligned()
}

// moveToRow moves the cursor to a row, counted from 1.
func (s *Screen) moveToRow(n int) {
	s.y = n - 1
	if s.modes&modeOrigin != 0 {
		s.y += s.buf.top
	}
	s.clamp()
	s.jumped()
}

// moveBy moves the cursor, up to the edge of the screen or a margin.
func (s *Screen) moveBy(dx, dy int) {
	s.clamp()
	x := s.x + dx
	switch {
	case dx > 0 && s.x <= s.buf.right:
		x = min(x, s.buf.right)
	case dx < 0 && s.x >= s.buf.left:
		x = max(x, s.buf.left)
	}
	s.x, s.y = x, s.y+dy
	s.clamp()
}

func (s *Screen) moveLeft(n int)  { s.moveBy(-n, 0) }
func (s *Screen) moveRight(n int) { s.moveBy(n, 0) }

func (s *Screen) moveUp(n int) {
	s.moving(-n)
	if s.y >= s.buf.top {
		n = min(n, s.y-s.buf.top)
	}
	s.moveBy(0, -n)
}

func (s *Screen) moveDown(n int) {
	s.moving(n)
	if s.y <= s.buf.bottom {
		n = min(n, s.buf.bottom-s.y)
	}
	s.moveBy(0, n)
}

func (s *Screen) nextLines(n int) {
	s.moveDown(n)
	s.x = s.leftEdge()
}

func (s *Screen) previousLines(n int) {
	s.moveUp(n)
	s.x = s.leftEdge()
}

// moveRows moves the cursor down, also across a margin.
func (s *Screen) moveRows(n int) {
	s.moving(n)
	s.moveBy(0, n)
}

// backspace moves to the left: with reverse wrap, from the start of a continued row to the end of the one above.
func (s *Screen) backspace() {
	if s.modes&modeReverseWrap == 0 {
		s.clamp()
		if s.x > 0 {
			s.x--
		}
		return
	}
	r := s.buf.row(s.y)
	switch {
	case s.x > 0:
		s.x--
	case s.y > s.buf.top && s.y <= s.buf.bottom && r.wrapped:
		s.unwrap(r)
		s.y--
		s.x = s.cols - 1
		if r = s.buf.row(s.y); r.cells[s.x]&(contentMask|spacerFlag) == 0 {
			s.x-- // a wide character did not fit
		}
	}
	s.clamp()
}

// unwrap makes a row the start of a line of its own.
func (s *Screen) unwrap(r *row) {
	if r.wrapped {
		r.wrapped, r.line = false, s.newLine()
	}
}

func (s *Screen) lineFeed() {
	if s.descend() {
		s.unwrap(s.buf.row(s.y))
	}
	s.x = min(s.x, s.cols-1)
}

// descend moves the cursor to the next row, and reports whether it did. At the bottom of the scroll region the
// rows move instead.
func (s *Screen) descend() bool {
	switch {
	case s.y == s.buf.bottom:
		s.scrollUp(1)
		s.descended(true)
	case s.y < s.rows-1:
		s.y++
		s.descended(false)
		return true
	}
	return false
}

// index is IND. Unlike a line feed it leaves a continued row one.
func (s *Screen) index() {
	s.clamp()
	s.descend()
}

// nextLine is NEL.
func (s *Screen) nextLine() {
	s.x = s.leftEdge()
	s.index()
}

func (s *Screen) reverseIndex() {
	s.clamp()
	s.moving(-1)
	if s.y == s.buf.top {
		s.shift(s.buf.top, -1, s.eraser())
	} else if s.y > 0 {
		s.y--
	}
}

// backIndex is DECBI.
func (s *Screen) backIndex() {
	if s.x == s.buf.left {
		s.scrollRight(1)
	} else if s.x > 0 {
		s.x--
	}
}

// forwardIndex is DECFI.
func (s *Screen) forwardIndex() {
	s.clamp()
	if s.x == s.buf.right {
		s.scrollLeft(1)
	} else if s.x < s.cols-1 {
		s.x++
	}
}

func (s *Screen) saveCursor() {
	l := s.buf.likeness
	s.buf.saved = cursor{s.x, s.y, s.pen, s.charsets, l.level != same, l.shifted}
}

func (s *Screen) restoreCursor() {
	c := s.buf.saved
	s.x, s.y, s.charsets = c.x, c.y, c.charsets
	c.pen.Link = s.pen.Link
	s.setPen(c.pen)
	s.clamp()
}

// recallCursor is DECRC.
func (s *Screen) recallCursor() {
	s.restoreCursor()
	s.restored()
}

const tabWidth = 8

func defaultTabs(cols int) []bool {
	tabs := make([]bool, cols)
	for x := 0; x < cols; x += tabWidth {
		tabs[x] = true
	}
	return tabs
}

func (s *Screen) tab(n int) {
	for ; n > 0 && s.x < s.cols-1; n-- {
		s.x++
		for s.x < s.cols-1 && !s.tabs[s.x] {
			s.x++
		}
	}
}

func (s *Screen) backTab(n int) {
	if s.x >= s.cols {
		return
	}
	for ; n > 0 && s.x > 0; n-- {
		s.x--
		for s.x > 0 && !s.tabs[s.x] {
			s.x--
		}
	}
}

func (s *Screen) setTab() {
	if s.x < s.cols {
		s.tabs[s.x] = true
	}
}

// clearTabs is TBC.
func (s *Screen) clearTabs(which int) {
	switch {
	case which == 0 && s.x < s.cols:
		s.tabs[s.x] = false
	case which == 3:
		clear(s.tabs)
	}
}
