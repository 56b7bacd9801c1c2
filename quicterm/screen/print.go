package screen

// Print shows ASCII characters.
func (h *handler) Print(text []byte) {
	s := (*Screen)(h)
	if s.charsets.Translates() || s.modes&modeInsert != 0 || s.margins() {
		for _, c := range text {
			s.put(s.charsets.Translate(c))
		}
		return
	}
	pen, _ := s.penStyle()
	base := blank(pen)
	for len(text) > 0 {
		if s.x >= s.cols && !s.wrap() {
			// Each character takes the place of the one before it in the last column.
			s.x = s.cols - 1
			text = text[len(text)-1:]
		}
		r := s.buf.row(s.y)
		n := min(len(text), s.cols-s.x)
		cells := r.cells[s.x : s.x+n]
		if s.x > 0 && r.cells[s.x-1]&wideFlag != 0 {
			r.cells[s.x-1] = base
		}
		end := s.x + n
		if end < s.cols && r.cells[end]&spacerFlag != 0 {
			r.cells[end] = base
		}
		for i, c := range text[:n] {
			cells[i] = base | cell(c)
		}
		s.x = end
		text = text[n:]
	}
	s.repeat = true
}

// Rune shows a character that is not ASCII.
func (h *handler) Rune(r rune) { (*Screen)(h).put(r) }

// Broken drops what is no text.
func (h *handler) Broken([]byte) {}

func (s *Screen) put(r rune) {
	width := RuneWidth(r)
	if width == 0 {
		s.combine(r)
		return
	}
	s.place(cell(r), width)
}

// place shows a character, given as the content of a cell.
func (s *Screen) place(content cell, width int) {
	right := s.rightEdge()
	if s.x+width > right {
		if !s.wrap() {
			s.x = right - 1
			if width == 2 {
				return
			}
		}
		right = s.rightEdge()
	}
	pen, _ := s.penStyle()
	base := blank(pen)
	line := s.buf.row(s.y)
	if s.modes&modeInsert != 0 {
		line.insert(s.x, right, width, base)
	}
	end := s.x + width
	if line.isWide(s.x - 1) {
		line.cells[s.x-1] = base
	}
	if line.isSpacer(end) {
		line.cells[end] = base
	}
	line.cells[s.x] = base | content
	if width == 2 {
		line.cells[s.x] |= wideFlag
		line.cells[s.x+1] = base | spacerFlag
	}
	s.x = end
	s.repeat = true
}

func (s *Screen) combine(r rune) {
	line, x := s.before()
	if x >= 0 && line.cells[x]&contentMask != 0 {
		line.cells[x] = s.combined(line.cells[x], r)
	}
}

// before returns the row of the cursor, and the column of the character before it.
func (s *Screen) before() (line *row, x int) {
	line, x = s.buf.row(s.y), s.x-1
	if x > 0 && line.isSpacer(x) {
		x--
	}
	return line, x
}

// wrap moves the cursor to the start of the next row, if autowrap is on.
func (s *Screen) wrap() bool {
	if s.modes&modeWrap == 0 {
		return false
	}
	pen, _ := s.penStyle()
	old := s.buf.row(s.y)
	right := s.rightEdge()
	for x := s.x; x < right; x++ { // a wide character does not fit
		old.erase(x, x+1, blank(pen))
	}
	line := old.line
	s.x = s.leftEdge()
	s.descend()
	next := s.buf.row(s.y)
	if !s.margins() {
		next.wrapped, next.line = true, line
	}
	return true
}

// repeatLast is REP. The count is bounded by the size of the screen.
func (s *Screen) repeatLast(n int) {
	if !s.repeat || s.x == 0 {
		return
	}
	line, x := s.before()
	content, width := line.cells[x]&contentMask, 1
	if line.isWide(x) {
		width = 2
	}
	for range min(n, s.cols*s.rows) {
		s.place(content, width)
	}
}
