package screen

import (
	"unicode/utf8"
)

// A Place is a column and a row of the screen.
type Place struct{ X, Y int }

// A Placed is a cell to be drawn over the screen.
type Placed struct {
	Place
	Cell
}

// Drawable reports whether something can be drawn over a terminal that shows s, and erased again: not
// inside of a control sequence, nor in modes in which characters or moves do something else than usual, nor
// while the program draws an image that is shown when it is complete.
func (s *Screen) Drawable() bool {
	const unusual = modeInsert | modeOrigin | modeReverseWrap | modeSync
	if !s.Ground() || s.modes&unusual != 0 || s.charsets.Translates() || s.margins() ||
		s.pen.Attributes&Protected != 0 || !s.buf.likeness.sure(s.y, s.y) {
		return false
	}
	if s.x >= s.cols { // Erase has to print the last character again
		_, repeat := s.printed()
		return repeat
	}
	return true
}

// CanMove reports whether Draw can leave the cursor at a place of a Drawable screen.
func (s *Screen) CanMove(to Place) bool {
	if to.X < 0 || to.X >= s.cols || to.Y < 0 || to.Y >= s.rows || !s.buf.likeness.sure(s.y, to.Y) {
		return false
	}
	// Margins stop moves that cross them.
	part := func(y int) int {
		switch {
		case y < s.buf.top:
			return -1
		case y > s.buf.bottom:
			return 1
		}
		return 0
	}
	return part(to.Y) == part(s.y)
}

// CanDraw reports whether a cell can be drawn over a Drawable screen: a blank, or one character without
// combining ones. The last column is left alone: there, terminals note where lines continue.
func (s *Screen) CanDraw(c Placed) bool {
	if !s.CanMove(c.Place) || c.Width < 1 || c.Width > 2 || c.Text == "" && c.Width != 1 {
		return false
	}
	if c.Text != "" {
		r, n := utf8.DecodeRuneInString(c.Text)
		control := r < ' ' || r >= 0x7f && r < 0xa0
		if n != len(c.Text) || r == utf8.RuneError || control || RuneWidth(r) != c.Width {
			return false
		}
	}
	start, end := s.columns(c)
	if end >= s.cols {
		return false
	}
	for _, under := range s.buf.row(c.Y).cells[start:end] { // a blank that erasing does not leave stays
		if under&(contentMask|spacerFlag) == 0 && !s.erasableBlank(under) {
			return false
		}
	}
	return true
}

// columns returns the columns that change when a cell is drawn: wide characters change as a whole.
func (s *Screen) columns(c Placed) (start, end int) {
	line := s.buf.row(c.Y)
	start, end = c.X, min(c.X+c.Width, s.cols)
	if line.isSpacer(start) {
		start--
	}
	if line.isSpacer(end) {
		end++
	}
	return start, end
}

// Draw appends output that draws cells over a terminal that shows s, which is Drawable. It moves the cursor
// from one place to another, and leaves the pen. All of the cells and places are ones that s can draw.
// Moves are relative: the terminal's first row need not be the one of s.
func (s *Screen) Draw(b []byte, cells []Placed, from, to Place) []byte {
	d := newDrawer(s, b, from)
	d.cells(cells)
	d.style(s.pen)
	d.moveTo(to)
	return d.b
}

// Erase appends output that undoes Draw, which has left the cursor at from: then the terminal shows s, with
// its cursor, a pending wrap, its pen, and the character that a combining mark or REP is for.
func (s *Screen) Erase(b []byte, drawn []Placed, from Place) []byte {
	d := newDrawer(s, b, from)
	var truth []Placed
	for _, c := range drawn {
		truth = s.truth(truth, c)
	}
	d.cells(truth)
	d.style(s.pen)
	if at, repeat := s.printed(); repeat {
		d.moveTo(Place{at, s.y})
		d.text(s.buf.row(s.y).cells[at])
		return d.b
	}
	d.moveTo(Place{s.x, s.y})
	if d.printed == len(d.b) {
		d.add("\x00") // so that the terminal does not repeat the character
	}
	return d.b
}

func (s *Screen) truth(cells []Placed, drawn Placed) []Placed {
	start, end := s.columns(drawn)
	row := s.Row(drawn.Y)
	for x := start; x < end; x++ {
		if c := row.Cell(x); c.Width > 0 {
			cells = append(cells, Placed{Place{x, drawn.Y}, c})
		}
	}
	return cells
}

// A drawer draws over a screen.
type drawer struct {
	renderer
	at      Place // of the cursor
	printed int   // len(b) after the last character
}

func newDrawer(s *Screen, b []byte, at Place) drawer {
	return drawer{renderer: renderer{s: s, b: b, pen: s.pen}, at: at, printed: -1}
}

// moveTo moves the cursor up or down, and left or right.
func (d *drawer) moveTo(to Place) {
	last := d.s.cols - 1
	move := func(n int, back, forth byte) {
		if n < 0 {
			n, forth = -n, back
		}
		switch {
		case n == 1:
			d.b = append(d.b, "\x1b["...)
			d.b = append(d.b, forth)
		case n > 1:
			d.addf("\x1b[%d%c", n, forth)
		}
	}
	if to == d.at {
		return
	}
	if d.at.X > last { // terminals do not agree on where BS and CUB go from a pending wrap
		d.add("\r")
		d.at.X = 0
	}
	move(to.Y-d.at.Y, 'A', 'B')
	move(min(to.X, last)-d.at.X, 'D', 'C')
	d.at = to
}

// cells draws cells. Blanks that follow each other are erased together.
func (d *drawer) cells(cells []Placed) {
	for len(cells) > 0 {
		c, n := cells[0], 1
		d.moveTo(c.Place)
		if c.Text == "" && erasable(c.Style) {
			for n < len(cells) && cells[n].Cell == c.Cell && cells[n].Place == (Place{c.X + n, c.Y}) {
				n++
			}
			d.background(c.Style.Bg)
			d.addf("\x1b[%dX", n)
		} else {
			d.style(c.Style)
			if c.Text == "" {
				c.Text = " "
			}
			d.add(c.Text)
			d.at.X += c.Width
			d.printed = len(d.b)
		}
		cells = cells[n:]
	}
}
