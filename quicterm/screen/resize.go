package screen

import "github.com/quicterm/quicterm/quicterm/screen/marks"

// Resize changes the size. The main screen and the scrollback are wrapped again, as xterm.js does: lines keep
// their ids, and the line with the cursor is cut off or padded instead, since the program will draw it again.
// They are as before when an earlier size comes back and nothing was printed meanwhile. The scroll regions
// become the whole screens.
func (s *Screen) Resize(cols, rows int) {
	cols, rows = clampSize(cols, rows)
	if cols == s.cols && rows == s.rows {
		return
	}
	s.buf.x, s.buf.y = s.x, s.y
	s.main.likeness = likeness{level: resized} // programs draw the alternate screen again
	s.main.saved.unlike = true
	s.resizeMain(cols, rows)
	if s.Alternate() {
		r := resizer{s: s, b: s.alt, oldCols: s.cols, oldRows: s.rows, cols: cols, rows: rows}
		r.resize()
	} else if s.alt != nil { // it is blanked before it is shown again
		alt := newBuffer(cols, rows)
		alt.saved, alt.keyboard = s.alt.saved, s.alt.keyboard
		s.alt = alt
	}
	old := min(cols, s.cols)
	s.tabs = append(s.tabs[:old:old], defaultTabs(cols)[old:]...)
	s.cols, s.rows = cols, rows
	s.repeat = s.repeat && s.x == s.buf.x // else another character is before the cursor
	s.x, s.y = s.buf.x, s.buf.y
	if s.x < cols { // else a wrap is pending
		s.clamp()
	}
}

// resizeMain changes the size of the main screen, from what it was before the last resizes if nothing has changed
// since then.
func (s *Screen) resizeMain(cols, rows int) {
	if s.stay.unchanged(s) {
		s.stay.comeBack(s)
	} else {
		s.stay = s.leave()
	}
	before := s.stay
	if b := s.main; before.cols == cols && before.rows == rows {
		b.top, b.bottom, b.left, b.right = 0, rows-1, 0, cols-1
		s.stay = nil
		return
	}
	r := resizer{
		s: s, b: s.main, oldCols: before.cols, oldRows: before.rows, cols: cols, rows: rows, maxLines: s.limits.Lines,
	}
	r.resize()
	before.resized(s.main)
	s.stay = before
}

// A resizer changes the size of one buffer. It works on the list of all rows, unpacked.
type resizer struct {
	s                *Screen
	b                *buffer
	oldCols, oldRows int
	cols, rows       int // the new size
	maxLines         int // of the scrollback, 0 without one

	all    []row
	base   int // index of the top row of the screen
	y      int // of the cursor
	savedY int // of the saved cursor, as an index of all
}

func (r *resizer) resize() {
	s, b := r.s, r.b
	oldCols, oldRows := r.oldCols, r.oldRows
	r.y = b.y
	if r.maxLines > 0 {
		for i := range s.history.lines {
			r.all = append(r.all, fit(s.history.row(s, i, oldCols), oldCols))
		}
	}
	r.base = len(r.all)
	r.savedY = r.base + b.saved.y
	for y := range oldRows {
		r.all = append(r.all, *b.row(y))
	}
	if r.cols > oldCols {
		r.fitAll()
	}
	added := r.setRows(oldRows)
	if drop := len(r.all) - r.rows - r.maxLines; r.rows < oldRows && drop > 0 {
		r.dropTop(drop)
	}
	b.x = min(b.x, r.cols-1)
	r.y = min(r.y, r.rows-1) + added
	b.saved.x = min(b.saved.x, r.cols-1)
	if r.maxLines > 0 && r.cols != oldCols {
		r.rewrap(oldCols)
	}
	if r.cols < oldCols {
		r.fitAll()
	}
	r.store()
}

// fit returns a row cut off or padded with blanks.
func fit(r row, cols int) row {
	if len(r.cells) == cols {
		return r
	}
	cells := make([]cell, cols)
	copy(cells, r.cells)
	if cells[cols-1]&wideFlag != 0 {
		cells[cols-1] = blank(cells[cols-1].style())
	}
	r.cells = cells
	return r
}

func (r *resizer) fitAll() {
	for i := range r.all {
		r.all[i] = fit(r.all[i], r.cols)
	}
}

func (r *resizer) newRow() row { return row{cells: make([]cell, r.cols), line: r.s.newLine()} }

// setRows changes the number of rows, and returns how many rows the cursor moves down on the
// screen. A higher screen takes rows from the scrollback, unless there is text below the cursor.
// A lower one loses rows below the cursor first.
func (r *resizer) setRows(oldRows int) (down int) {
	for n := oldRows; n < r.rows; n++ {
		if r.base > 0 && len(r.all) <= r.base+r.y+down+1 {
			r.base--
			down++
		} else {
			r.all = append(r.all, r.newRow())
		}
	}
	for n := oldRows; n > r.rows; n-- {
		if len(r.all) > r.base+r.y+1 {
			r.all = r.all[:len(r.all)-1]
		} else {
			r.base++
		}
	}
	return down
}

func (r *resizer) dropTop(n int) {
	r.all = r.all[n:]
	r.base = max(r.base-n, 0)
	r.savedY = max(r.savedY-n, 0)
}

// group returns the end of the rows of the line that begins at i.
func (r *resizer) group(i int) (end int) {
	for end = i + 1; end < len(r.all) && r.all[end].wrapped; end++ {
	}
	return end
}

// text returns the cells of a line, without blanks at its end and without those that a wide
// character left at the end of a row because it did not fit.
func text(rows []row, cols int) (cells []cell) {
	for i := range rows {
		n := cols
		if i == len(rows)-1 {
			n = rows[i].length()
		} else if rows[i].cells[cols-1]&(contentMask|spacerFlag) == 0 && rows[i+1].isWide(0) {
			n--
		}
		cells = append(cells, rows[i].cells[:n]...)
	}
	return cells
}

// layout cuts the cells of a line into rows.
func layout(cells []cell, cols int) (rows [][]cell) {
	for len(cells) > cols {
		n := cols
		if cells[n-1]&wideFlag != 0 {
			n--
		}
		rows = append(rows, cells[:n])
		cells = cells[n:]
	}
	return append(rows, cells)
}

// rewrap wraps lines anew, except the one with the cursor. For more columns, rows above the cursor that are no
// longer needed bring rows of the scrollback back, or move the cursor up. For fewer, they move the cursor down while
// there is room on the screen, and then the rows at the top into the scrollback.
func (r *resizer) rewrap(oldCols int) {
	var all []row
	cursor, added := r.base+r.y, 0
	for i, end := 0, 0; i < len(r.all); i = end {
		end = r.group(i)
		rows := r.all[i:end]
		fits := len(rows) == 1 && rows[0].length() <= r.cols
		if !fits && (cursor < i || cursor >= end) {
			first := rows[0]
			rows = nil
			for k, part := range layout(text(r.all[i:end], oldCols), r.cols) {
				cells := make([]cell, r.cols)
				copy(cells, part)
				rows = append(rows, row{cells: cells, line: first.line, wrapped: k > 0 || first.wrapped})
			}
			for k, from := range r.all[i:end] {
				from.mark.MoveTo(func(y int) *marks.Row { return &rows[y].mark }, len(rows), r.cols, k*oldCols)
			}
			if i < cursor {
				added += len(rows) - (end - i)
			}
		}
		all = append(all, rows...)
	}
	r.all = all
	down := max(added, -r.base) // of the top row of the screen
	switch {
	case added < 0:
		r.y = max(r.y+added-down, 0)
	case r.base == 0:
		room := min(added, r.rows-1-r.y)
		r.y += room
		down -= room
	}
	r.base += down
	r.savedY = min(max(r.savedY+added, 0), r.base+r.rows-1)
}

// settle drops blank rows below the screen, and then moves rows into the scrollback as long as the
// cursor's row stays.
func (r *resizer) settle() {
	for len(r.all) > r.base+r.rows && r.all[len(r.all)-1].length() == 0 {
		r.all = r.all[:len(r.all)-1]
	}
	if up := min(len(r.all)-r.base-r.rows, r.y); up > 0 {
		r.base += up
		r.y -= up
	}
	for len(r.all) < r.base+r.rows {
		r.all = append(r.all, r.newRow())
	}
	r.all = r.all[:r.base+r.rows]
	if drop := len(r.all) - r.rows - r.maxLines; drop > 0 {
		r.dropTop(drop)
	}
}

func (r *resizer) store() {
	r.settle()
	b := r.b
	resized := newBuffer(r.cols, r.rows)
	for y := range resized.ring {
		cells := resized.ring[y].cells
		from := r.all[r.base+y]
		copy(cells, from.cells)
		resized.ring[y].line, resized.ring[y].wrapped, resized.ring[y].mark = from.line, from.wrapped, from.mark
	}
	b.ring, b.first = resized.ring, 0
	b.top, b.bottom, b.left, b.right = 0, r.rows-1, 0, r.cols-1
	b.y = r.y
	b.saved.y = max(r.savedY-r.base, 0)
	if r.maxLines > 0 {
		h := &r.s.history
		pushed := h.pushed // wrapping rows again scrolls none
		h.clear()
		for i := range r.base {
			h.push(r.s, &r.all[i])
		}
		h.pushed = pushed
	}
}
