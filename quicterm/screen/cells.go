package screen

// A Row is a row of the screen or of the scrollback. It is valid until the Screen changes.
type Row struct {
	s *Screen
	r row
}

// A Cell is what a column shows.
type Cell struct {
	Text  string // a character with its combining marks; empty in a blank
	Width int    // 0 for the second column of a wide character, else 1 or 2
	Style Style
}

// Row returns the row y of the screen. y < 0 is the scrollback, of which -1 is the newest row. If there
// is no such row, it returns an empty one.
func (s *Screen) Row(y int) Row {
	switch {
	case y >= 0 && y < s.rows:
		return Row{s, *s.buf.row(y)}
	case y < 0 && y >= -s.history.lines:
		return Row{s, s.rowOf(y)}
	}
	return Row{s: s}
}

// Rows returns the rows of the screen, and before them those of the scrollback, at most so many and the newest ones.
// The alternate screen has none.
func (s *Screen) Rows(scrollback int) []Row {
	if s.Alternate() {
		scrollback = 0
	}
	var rows []Row
	for y := -min(scrollback, s.history.lines); y < s.rows; y++ {
		rows = append(rows, s.Row(y))
	}
	return rows
}

func (s *Screen) rowOf(y int) row {
	if y >= 0 {
		return *s.main.row(y)
	}
	return s.history.row(s, s.history.lines+y, s.cols)
}

// Lines returns the number of rows of the scrollback.
func (s *Screen) Lines() int { return s.history.lines }

// Len returns the number of columns.
func (r Row) Len() int { return len(r.r.cells) }

// Wrapped reports whether the row continues the one above.
func (r Row) Wrapped() bool { return r.r.wrapped }

// Line returns the id of the line that the row belongs to. It stays the same while the line scrolls
// and when a resize wraps it differently.
func (r Row) Line() uint64 { return r.r.line }

// Text returns the characters, with spaces for blanks except at the end.
func (r Row) Text() string {
	b := make([]byte, 0, len(r.r.cells))
	end := 0
	for _, c := range r.r.cells {
		switch {
		case c&contentMask != 0:
			b = r.s.appendText(b, c)
			if c&contentMask != ' ' {
				end = len(b)
			}
		case c&spacerFlag == 0:
			b = append(b, ' ')
		}
	}
	return string(b[:end])
}

// Cell returns the cell of the column x.
func (r Row) Cell(x int) Cell {
	c := r.r.cells[x]
	var buf [maxCluster]byte
	out := Cell{Text: string(r.s.appendText(buf[:0], c)), Width: 1, Style: r.s.styles.get(c.style())}
	switch {
	case c&wideFlag != 0:
		out.Width = 2
	case c&spacerFlag != 0:
		out.Width = 0
	}
	return out
}
