package screen

import "github.com/quicterm/quicterm/quicterm/screen/charset"

// A buffer is the main or the alternate screen. Its rows are a ring, so that scrolling
// the whole screen moves no cells.
type buffer struct {
	ring  []row
	first int // index of the top row

	top, bottom int // the scroll region, both within
	left, right int // the columns of it, both within

	x, y     int // the cursor while the other buffer is shown
	saved    cursor
	keyboard keyboard
	likeness likeness
}

// A cursor is what DECSC saves.
type cursor struct {
	x, y     int
	pen      Style
	charsets charset.Sets

	unlike, shifted bool // the terminal may have saved another row, another column: see likeness
}

func newBuffer(cols, rows int) *buffer {
	b := &buffer{ring: make([]row, rows), bottom: rows - 1, right: cols - 1}
	cells := make([]cell, cols*rows)
	for i := range b.ring {
		b.ring[i].cells = cells[i*cols : (i+1)*cols : (i+1)*cols]
	}
	return b
}

// row returns the row y from the top.
func (b *buffer) row(y int) *row {
	i := b.first + y
	if i >= len(b.ring) {
		i -= len(b.ring)
	}
	return &b.ring[i]
}

// rotate moves the rows from top to bottom up by n, so that the top n come to the bottom.
func (b *buffer) rotate(top, bottom, n int) {
	height := bottom - top + 1
	if height == len(b.ring) {
		b.first = (b.first + n + len(b.ring)) % len(b.ring)
		return
	}
	n = (n + height) % height
	b.reverse(top, top+n-1)
	b.reverse(top+n, bottom)
	b.reverse(top, bottom)
}

func (b *buffer) reverse(top, bottom int) {
	for ; top < bottom; top, bottom = top+1, bottom-1 {
		upper, lower := b.row(top), b.row(bottom)
		*upper, *lower = *lower, *upper
	}
}

// whole reports whether the scroll region is the whole screen.
func (b *buffer) whole(cols int) bool {
	return b.top == 0 && b.bottom == len(b.ring)-1 && b.left == 0 && b.right == cols-1
}
