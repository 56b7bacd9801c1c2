package trace

import "github.com/quicterm/quicterm/quicterm/screen"

// A place is a cell. Rows of the main screen are counted from the first that it had, so that a
// place keeps its text when the screen scrolls. Those of the alternate screen begin at alternate.
type place struct {
	row uint64
	x   int
}

const alternate = 1 << 40

// A view is the text of a screen at a moment.
type view struct {
	cols, rows int
	top        uint64   // the row of the screen's first
	text       []string // of each cell, row by row; "" for blanks
	cursor     place
}

func look(s *screen.Screen) *view {
	cols, rows := s.Size()
	v := &view{cols: cols, rows: rows, top: top(s), text: make([]string, cols*rows)}
	for y := range rows {
		row := s.Row(y)
		for x := range cols {
			v.text[y*cols+x] = glyph(row.Cell(x))
		}
	}
	v.cursor = cursor(s)
	return v
}

// top returns the row of the first that a screen shows.
func top(s *screen.Screen) uint64 {
	if s.Alternate() {
		return alternate
	}
	return s.Scrolled()
}

func cursor(s *screen.Screen) place {
	x, y := s.Cursor()
	return place{top(s) + uint64(y), x}
}

// glyph returns what of a cell is compared. A space is blank.
func glyph(c screen.Cell) string {
	if c.Text == " " {
		return ""
	}
	return c.Text
}

// at returns the text of a cell, and whether the view has it.
func (v *view) at(p place) (text string, ok bool) {
	if p.row < v.top || p.row >= v.top+uint64(v.rows) || p.x < 0 || p.x >= v.cols {
		return "", false
	}
	return v.text[int(p.row-v.top)*v.cols+p.x], true
}

// line returns the cells of a row, or nil.
func (v *view) line(row uint64) []string {
	if row < v.top || row >= v.top+uint64(v.rows) {
		return nil
	}
	y := int(row - v.top)
	return v.text[y*v.cols : (y+1)*v.cols]
}
