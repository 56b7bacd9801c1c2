package screen

import "github.com/quicterm/quicterm/quicterm/screen/marks"

// A row is a row of cells on a screen.
type row struct {
	cells   []cell
	line    uint64 // names the logical line: rows that continue a line have its id
	wrapped bool   // the row continues the one above
	mark    marks.Row
}

func (r *row) fill(c cell) { fill(r.cells, c) }

func fill(cells []cell, c cell) {
	if c == 0 {
		clear(cells)
		return
	}
	for i := range cells {
		cells[i] = c
	}
}

// isWide reports whether the cell x has the first half of a wide character.
func (r *row) isWide(x int) bool { return x >= 0 && x < len(r.cells) && r.cells[x]&wideFlag != 0 }

// isSpacer reports whether the cell x has the second half of a wide character.
func (r *row) isSpacer(x int) bool { return x < len(r.cells) && r.cells[x]&spacerFlag != 0 }

// split blanks both halves of a wide character that lies across the left edge of the cell x.
func (r *row) split(x int, c cell) {
	if x > 0 && r.isWide(x-1) {
		r.cells[x-1] = c
		if x < len(r.cells) {
			r.cells[x] = c
		}
	}
}

func (r *row) erase(start, end int, c cell) {
	end = min(end, len(r.cells))
	if start >= end {
		return
	}
	r.split(start, c)
	r.split(end, c)
	fill(r.cells[start:end], c)
}

func (r *row) eraseUnprotected(start, end int, c cell, protected func(cell) bool) {
	for x := start; x < min(end, len(r.cells)); x++ {
		if !protected(r.cells[x]) {
			r.erase(x, x+1, c)
		}
	}
}

// insert moves the cells from x up to end n columns to the right and blanks those in between.
func (r *row) insert(x, end, n int, c cell) {
	n = min(n, end-x)
	if n <= 0 {
		return
	}
	r.split(x, c)
	r.split(end, c)
	r.split(end-n, c)
	copy(r.cells[x+n:end], r.cells[x:end-n])
	fill(r.cells[x:x+n], c)
}

// remove removes n cells at x, moves the ones up to end to the left and blanks the rest.
func (r *row) remove(x, end, n int, c cell) {
	n = min(n, end-x)
	if n <= 0 {
		return
	}
	r.split(x, c)
	r.split(x+n, c)
	r.split(end, c)
	copy(r.cells[x:end-n], r.cells[x+n:end])
	fill(r.cells[end-n:end], c)
}

// length returns the number of columns up to the last character.
func (r *row) length() int {
	for x := len(r.cells); x > 0; x-- {
		if c := r.cells[x-1]; c&contentMask != 0 || c&spacerFlag != 0 {
			return x
		}
	}
	return 0
}
