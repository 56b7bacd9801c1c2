package predict

import "github.com/quicterm/quicterm/quicterm/screen"

// A strip is a row and the one below it, into which a long line continues: its columns are counted through both.
type strip struct {
	s    *screen.Screen
	y    int
	cols int
	len  int // columns: of one row if it is the last
}

func stripAt(s *screen.Screen, y int) strip {
	cols, rows := s.Size()
	return strip{s, y, cols, cols * min(rows-y, 2)}
}

func (t strip) cell(x int) screen.Cell { return t.s.Row(t.y + x/t.cols).Cell(x % t.cols) }

// appendTo appends the cells to others.
func (t strip) appendTo(cells []screen.Cell) []screen.Cell {
	for y := range t.len / t.cols {
		row := t.s.Row(t.y + y)
		for x := range t.cols {
			cells = append(cells, row.Cell(x))
		}
	}
	return cells
}

// cursor returns the column of the cursor, or false if it is elsewhere.
func (t strip) cursor() (x int, ok bool) {
	x, y := t.s.Cursor()
	if y == t.y+1 {
		return t.cols + x, true
	}
	return x, y == t.y
}

// full reports whether the text, or the cursor at the column x, comes close to the end of the first row.
func (t strip) full(x int) bool {
	last := t.cols - 1
	return x >= last-1 || !blank(t.cell(last)) || !blank(t.cell(last-1))
}

// wraps reports whether the text of the first row continues in the second, or will: only line editors and
// the kernel are known to do it so. The others move the rows below, or the text sideways.
func (t strip) wraps() bool {
	if t.s.Alternate() || t.len == t.cols {
		return false
	}
	below := t.s.Row(t.y + 1)
	return below.Wrapped() && below.Line() == t.s.Row(t.y).Line() || restBlank(below, 0)
}
