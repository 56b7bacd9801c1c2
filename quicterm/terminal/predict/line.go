package predict

import (
	"unicode"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// An anchor names a row of the screen, so that it is found again after the screen scrolled.
type anchor struct {
	line uint64
	part int // rows of that line above it
}

// anchorOf returns the anchor of the row y.
func anchorOf(s *screen.Screen, y int) anchor {
	line := s.Row(y).Line()
	a := anchor{line: line}
	for y > -s.Lines() && s.Row(y).Wrapped() && s.Row(y-1).Line() == line {
		y--
		a.part++
	}
	return a
}

// find returns the row that an anchor names now.
func (a anchor) find(s *screen.Screen) (y int, ok bool) {
	_, rows := s.Size()
	for y := range rows {
		if s.Row(y).Line() == a.line && anchorOf(s, y) == a {
			return y, true
		}
	}
	return 0, false
}

// A line is a row as it will be when the keys typed so far have done their work.
type line struct {
	cells []screen.Cell // of one row, or of two
	cols  int           // of a row
	x     int           // the cursor
	start int           // the column where what may be edited begins
	right int           // the column that text does not reach, 0 for the last one
	pen   screen.Style
}

// A change is what a key does to one column.
type change struct {
	x            int
	want, before screen.Cell
}

// unknown is what a column shows that nobody can tell.
var unknown = screen.Cell{Width: -1}

func blank(c screen.Cell) bool { return c.Width == 1 && (c.Text == "" || c.Text == " ") }

// same reports whether b shows the character of a, in any style, if a is known.
func same(a, b screen.Cell) bool {
	return a == unknown || a.Width == b.Width && (a.Text == b.Text || blank(a) && blank(b))
}

// wall returns the column right of the cursor that text must not reach.
func (l *line) wall() int {
	wall := len(l.cells) - 1
	if l.right > 0 && l.right >= l.x {
		wall = min(wall, l.right)
	}
	return wall
}

// textEnd returns the column behind the text that the cursor stands in: where two blanks follow, one
// blank and the wall, a suggestion, or the wall itself.
func (l *line) textEnd() int {
	wall := l.wall()
	for x := l.x; x < wall; x++ {
		if l.suggested(x) || blank(l.cells[x]) && (x+1 >= wall || blank(l.cells[x+1]) || l.suggested(x+1)) {
			return x
		}
	}
	return wall
}

// gapEnd returns the column right of x where text stands behind two blanks, or 0.
func gapEnd(row screen.Row, x int) int {
	blanks := 0
	for ; x < row.Len(); x++ {
		switch c := row.Cell(x); {
		case blank(c):
			blanks++
		case blanks >= 2:
			return x
		default:
			blanks = 0
		}
	}
	return 0
}

// suggested reports whether the cell x begins a suggestion: text that is paler than what is left of it.
func (l *line) suggested(x int) bool {
	c := l.cells[x]
	if blank(c) || x == 0 || !pale(c.Style) {
		return false
	}
	return blank(l.cells[x-1]) || !pale(l.cells[x-1].Style) || x == l.x
}

// pale reports whether a style is one that shells use for suggestions.
func pale(s screen.Style) bool {
	if s.Attributes&screen.Dim != 0 {
		return true
	}
	if i, ok := s.Fg.Palette(); ok {
		return i == 8 || i >= 238 && i <= 248
	}
	r, g, b, ok := s.Fg.RGB()
	return ok && max(r, g, b)-min(r, g, b) < 40 && max(r, g, b) < 180 && min(r, g, b) > 50
}

// style returns how a character typed at the cursor will look: as the one before it.
func (l *line) style() screen.Style {
	style := l.pen
	if l.x > l.start && !blank(l.cells[l.x-1]) {
		style = l.cells[l.x-1].Style
	}
	style.Link = 0
	style.Attributes &^= screen.Protected | screen.Dim
	return style
}

// An edit collects what one key changes.
type edit struct {
	*line
	changes []change
}

func (e *edit) set(x int, c screen.Cell) {
	if before := e.cells[x]; before != c {
		e.changes = append(e.changes, change{x, c, before})
		e.cells[x] = c
	}
}

// shift moves the cells from x up to end to the column to, and blanks what they leave.
func (e *edit) shift(x, end, to int) {
	moved := append([]screen.Cell(nil), e.cells[x:end]...)
	gap := screen.Cell{Width: 1, Style: screen.Style{Bg: e.pen.Bg}}
	for at := to + len(moved); at < end; at++ {
		e.set(at, gap)
	}
	for i, c := range moved {
		e.set(to+i, c)
	}
}

// widthLeft returns the width of the character before the column x.
func (l *line) widthLeft(x int) int {
	if x >= 2 && l.cells[x-1].Width == 0 {
		return 2
	}
	return 1
}

// print types a character at the cursor. It fails where the line would wrap or reach a wall.
func (e *edit) print(text string, width int, over bool) (class, bool) {
	c := screen.Cell{Text: text, Width: width, Style: e.style()}
	stop, kind := e.textEnd(), printable
	if e.x+width > e.wall() || e.x+width >= len(e.cells) || e.x%e.cols+width > e.cols {
		return other, false
	}
	if !over && stop > e.x {
		kind = insert
		switch {
		case stop+width <= e.wall() && e.free(stop, width) && e.narrow(e.x, stop+width):
			e.shift(e.x, stop, e.x+width)
		case stop == len(e.cells)-1 && e.x+width+2 < stop: // the text goes on elsewhere
			e.shift(e.x, stop-1-width, e.x+width)
			e.set(stop-1, unknown)
			e.set(stop, unknown)
		default:
			return other, false
		}
	} else if e.cells[e.x+width].Width == 0 {
		return other, false // half of a wide character
	}
	if width == 2 {
		kind = wide
		e.set(e.x+1, screen.Cell{Width: 0, Style: c.Style})
	}
	e.set(e.x, c)
	e.x += width
	return kind, true
}

// narrow reports whether the cells from x to end may move: wide ones leave gaps where the row ends.
func (l *line) narrow(x, end int) bool {
	for ; end > l.cols && x < end; x++ {
		if l.cells[x].Width != 1 {
			return false
		}
	}
	return true
}

// free reports whether the cells from x are blank or a suggestion.
func (l *line) free(x, n int) bool {
	for i := x; i < x+n; i++ {
		if !blank(l.cells[i]) && !l.suggested(i) {
			return false
		}
	}
	return true
}

// remove removes the cells from x up to stop, which are text of the line.
func (e *edit) remove(x, stop int) {
	last := max(e.textEnd(), stop)
	e.shift(stop, last, x)
}

// wordLeft returns where the word before the cursor starts: letters and digits, or all but blanks.
func (l *line) wordLeft(letters bool) int {
	x := l.x
	for x > l.start && !inWord(l.cells[x-1], letters) {
		x--
	}
	for x > l.start && inWord(l.cells[x-1], letters) {
		x--
	}
	return x
}

// indent returns the column where the text left of the cursor begins.
func (l *line) indent() int {
	x := 0
	for x < l.x && blank(l.cells[x]) {
		x++
	}
	return x
}

func inWord(c screen.Cell, letters bool) bool {
	if !letters {
		return !blank(c)
	}
	for _, r := range c.Text {
		return alphanumeric(r)
	}
	return c.Width == 0
}

func alphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
