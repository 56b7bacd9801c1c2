package screen

import (
	"slices"

	"github.com/quicterm/quicterm/quicterm/screen/marks"
)

// A rowWriter writes rows from the top of an empty screen, which scrolls when it is full.
type rowWriter struct {
	*renderer
	x     int  // the column of the cursor, cols while a wrap is pending
	fill  cell // the blanks in the rest of the row
	dirty bool // the cell at the cursor has a character that is not of the row
}

// rows writes rows of the scrollback and the rows of a buffer.
func (r *renderer) rows(b *buffer, lines int) {
	s := r.s
	total := lines + s.rows
	get := func(i int) row {
		if i < 0 || i >= total {
			return row{}
		}
		if i >= lines {
			return *b.row(i - lines)
		}
		this := s.Row(i - lines).r
		this.cells = this.cells[:s.cols]
		return this
	}
	w := rowWriter{renderer: r}
	feeds := 0 // line feeds to come
	above, this, below := row{}, row{}, get(0)
	for i := range total {
		above, this, below = this, below, get(i+1)
		if r.limit > 0 && len(r.b) > r.limit {
			return // is discarded
		}
		if i > 0 && this.wrapped {
			w.wrap(i, above, this)
		} else {
			if i > 0 {
				feeds++
			}
			if !below.wrapped && this.blank() && this.mark == (marks.Row{}) {
				continue
			}
			w.feed(i, feeds)
			feeds = 0
		}
		w.b = this.mark.AppendBegin(w.b, w.x)
		w.write(this, below)
	}
	if lines > 0 {
		w.feed(total-1, feeds)
	}
}

func (r *row) blank() bool {
	return !slices.ContainsFunc(r.cells, func(c cell) bool { return c != 0 })
}

// feed moves the cursor n rows down, to the start of the row i.
func (w *rowWriter) feed(i, n int) {
	w.x, w.fill, w.dirty = 0, 0, false
	if n == 0 {
		return
	}
	if i >= w.s.rows {
		w.background(0) // of the new rows
	}
	w.add("\r")
	for range n {
		w.add("\n")
	}
}

// wrap lets the line continue in the row i: the cursor is behind the last column of the one above.
func (w *rowWriter) wrap(i int, above, this row) {
	s := w.s
	first := this.cells[0]
	w.style(s.styles.get(first.style()))
	w.x, w.fill, w.dirty = 0, 0, false
	if i >= s.rows {
		w.fill = blank(s.styles.id(Style{Bg: w.pen.Bg}))
	}
	w.text(first)
	last := above.cells[s.cols-1]
	y := min(i, s.rows-1)
	switch {
	case y > 0 && s.erasableBlank(last) && !wrapsBlank(last, first):
		// The space that only let the line continue goes.
		w.moveTo(s.cols-1, y-1)
		w.background(s.styles.get(last.style()).Bg)
		w.add("\x1b[X")
		w.moveTo(0, y)
		w.dirty = true
	case first&contentMask == 0:
		w.add("\b")
		w.dirty = true
	case first&wideFlag != 0:
		w.x = 2
	default:
		w.x = 1
	}
}

// wrapsBlank reports whether a line continues with the wide character first because it does
// not fit into the last cell of the row above, which the terminal blanks then.
func wrapsBlank(last, first cell) bool {
	return last&contentMask == 0 && first&wideFlag != 0 && last.style() == first.style()
}

// write writes the cells of a row from the column of the cursor. If the next row continues the
// line, the cursor ends where a wrap is pending.
func (w *rowWriter) write(this, below row) {
	s := w.s
	cells, x := this.cells, w.x
	end := s.cols
	switch {
	case !below.wrapped:
		for end > x && cells[end-1] == w.fill && !(w.dirty && end-1 == x) {
			end--
		}
	case wrapsBlank(cells[end-1], below.cells[0]):
		end-- // the terminal blanks it
	}
	if column, ends := this.mark.End(); ends {
		if s.erasableBlank(cells[s.cols-1]) {
			column = min(column, s.cols-1)
		}
		w.cells(this, below, x, min(column, end))
		x = max(x, min(column, end))
		w.right(min(column, s.cols-1) - x)
		w.b = this.mark.AppendEnd(w.b)
	}
	w.cells(this, below, x, end)
}

// cells writes the cells from the cursor's column x up to end.
func (w *rowWriter) cells(this, below row, x, end int) {
	s, cells := w.s, this.cells
	for x < end {
		c := cells[x]
		if !s.erasableBlank(c) {
			w.style(s.styles.get(c.style()))
			for x < end && cells[x].style() == c.style() && !s.erasableBlank(cells[x]) {
				w.text(cells[x])
				x++
			}
			continue
		}
		start := x
		for x < end && cells[x] == c {
			x++
		}
		w.blanks(c, start, x, this.wrapped)
		if x < s.cols {
			w.right(x - start)
			continue
		}
		if !below.wrapped {
			break
		}
		w.right(x - start - 1)
		w.style(s.styles.get(c.style()))
		w.add(" ")
	}
}

// blanks makes the cells from start up to end, which begin at the cursor, blanks.
func (w *rowWriter) blanks(c cell, start, end int, wrapped bool) {
	if c == w.fill && !w.dirty {
		return
	}
	w.dirty = false
	w.background(w.s.styles.get(c.style()).Bg)
	if end == w.s.cols && !(wrapped && start == 0) { // there, EL ends the line above
		w.add("\x1b[K")
	} else {
		w.addf("\x1b[%dX", end-start)
	}
}

// erasableBlank reports whether erasing leaves such a cell.
func (s *Screen) erasableBlank(c cell) bool {
	return c&(contentMask|spacerFlag) == 0 && erasable(s.styles.get(c.style()))
}

func erasable(style Style) bool { return style == Style{Bg: style.Bg} }

// text writes the character of a cell.
func (r *renderer) text(c cell) {
	switch {
	case c&spacerFlag != 0:
	case c&contentMask == 0:
		r.b = append(r.b, ' ')
	default:
		r.b = r.s.appendText(r.b, c)
	}
}
