package screen

// A likeness says which rows of a terminal are surely those of its Screen. They may differ because the
// output began in a row of the terminal that the Screen does not know, or because the terminal was resized:
// terminals wrap lines anew in different ways.
//
// A row of the terminal is known by its distance from the cursor. The zero value is a terminal that is as the Screen.
type likeness struct {
	level    level
	row      bool // the row of the cursor is the same
	shifted  bool // the cursor may be in another column
	placed   bool // the cursor is in the same row, counted from the top
	highest  int  // with fromCursor: the first row below the last image
	lowest   int  // with fromCursor: the lowest row that the output has reached
	scrolled int  // how many rows since they were different
}

type level uint8

const (
	same       level = iota // all rows are the same
	fromCursor              // those are that the output has reached
	resized                 // blank rows below the cursor are blank
	different
)

// Displace says that the terminal's cursor may be in another row, with blanks below.
func (s *Screen) Displace() {
	s.main.likeness = likeness{level: fromCursor, row: true, lowest: s.y}
}

// sure reports whether a row is the same in the terminal, if it is as far from the row of the cursor.
func (l *likeness) sure(cursor, y int) bool {
	switch {
	case l.level == same:
		return true
	case l.shifted:
		return false
	case l.level == fromCursor:
		return y >= l.highest && y <= l.lowest
	}
	return l.row && y == cursor
}

func (s *Screen) lose() {
	if l := &s.buf.likeness; l.level != same {
		l.level, l.row, l.scrolled = different, false, 0
	}
}

// inserting: lines will be inserted or deleted if the cursor is in the scroll region, and the cursor goes
// to the first column.
func (s *Screen) inserting() {
	s.lose()
	if l := &s.buf.likeness; l.level != same && !s.buf.whole(s.cols) {
		l.shifted, l.placed = true, false
	}
}

// aligned: the cursor is in a column counted from the first.
func (s *Screen) aligned() { s.buf.likeness.shifted = false }

// restored: the cursor is in the place that was saved.
func (s *Screen) restored() {
	if saved := s.buf.saved; saved.unlike {
		s.buf.likeness = likeness{level: different, shifted: saved.shifted}
		return
	}
	s.aligned()
	s.jumped()
}

// jumped: the cursor was moved to a row counted from the top.
func (s *Screen) jumped() {
	s.lose()
	s.buf.likeness.placed = true
}

// stayed: the cursor is in the row that it had on another screen.
func (s *Screen) stayed(from *buffer) {
	if from.likeness.level != same {
		s.buf.likeness = likeness{level: different, shifted: from.likeness.shifted}
		return
	}
	s.jumped()
}

// moving: the cursor will be moved by n rows, as far as there are rows.
func (s *Screen) moving(n int) {
	l := &s.buf.likeness
	y := s.y + n
	switch {
	case l.level == same:
	case l.level == fromCursor && y >= l.highest && y <= l.lowest:
	case l.level == resized:
		l.row = false
	default:
		s.lose()
	}
}

// covered: a terminal that shows images has one in this row and some below, and its cursor in another place.
func (s *Screen) covered() {
	l := &s.buf.likeness
	free := l.level == same || l.level == fromCursor
	for y := s.y + 1; y < s.rows; y++ {
		free = free && s.buf.row(y).blank()
	}
	*l = likeness{level: different, shifted: true}
	if free {
		l.level, l.highest, l.lowest = fromCursor, s.y+1, s.y
	}
}

// descended: the cursor is in the next row, which came to the bottom if the screen has scrolled.
func (s *Screen) descended(scrolled bool) {
	l := &s.buf.likeness
	whole := scrolled && s.buf.whole(s.cols)
	if !scrolled && s.pen.Bg != 0 {
		s.lose() // if the terminal has scrolled, the row has this background there
	}
	switch l.level {
	case same:
		return
	case fromCursor:
		l.lowest = max(l.lowest, s.y)
		if whole {
			l.highest = max(l.highest-1, 0)
		}
	case resized:
		l.row = s.buf.row(s.y).blank()
	default:
		l.row = whole && !l.shifted // a scroll region may not be where the terminal's cursor is
	}
	if whole && !l.shifted {
		if l.scrolled++; l.scrolled >= 2*s.rows { // also if the terminal had to come to its bottom first
			*l = likeness{}
		}
	}
}

// cleared: the row of the cursor was erased, or all rows.
func (s *Screen) cleared(all bool) {
	l := &s.buf.likeness
	if l.row = true; all && l.placed && !l.shifted {
		*l = likeness{}
	}
}
