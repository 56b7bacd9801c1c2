package screen

import "github.com/quicterm/quicterm/quicterm/screen/vt"

// attributeCodes are the parameters of SGR that set and reset attributes.
var attributeCodes = []struct {
	attribute Attributes
	on, off   int
}{
	{Bold, 1, 22}, {Dim, 2, 22}, {Italic, 3, 23}, {Blink, 5, 25}, {Inverse, 7, 27}, {Hidden, 8, 28},
	{Strike, 9, 29}, {Overline, 53, 55},
}

// attributeChanges are the same by parameter.
var attributeChanges = func() (changes [56]struct{ set, reset Attributes }) {
	for _, a := range attributeCodes {
		changes[a.on].set |= a.attribute
		changes[a.off].reset |= a.attribute
	}
	return changes
}()

// selectGraphics is SGR.
func (s *Screen) selectGraphics(c *vt.Control) {
	pen := s.pen
	for i := 0; i < c.Len(); i++ {
		if c.Sub(i) {
			continue
		}
		switch p := c.Value(i); {
		case p == 0:
			pen = Style{Link: pen.Link}
		case p == 4:
			pen.Underline = SingleUnderline
			if i+1 < c.Len() && c.Sub(i+1) {
				if u := c.Value(i + 1); u >= 0 && u <= int(DashedUnderline) {
					pen.Underline = Underline(u)
				}
			}
		case p == 21:
			pen.Underline = DoubleUnderline
		case p == 24:
			pen.Underline = NoUnderline
		case p >= 30 && p <= 37:
			pen.Fg = Palette(uint8(p - 30))
		case p == 38:
			i += extendedColor(&pen.Fg, c, i)
		case p == 39:
			pen.Fg = 0
		case p >= 40 && p <= 47:
			pen.Bg = Palette(uint8(p - 40))
		case p == 48:
			i += extendedColor(&pen.Bg, c, i)
		case p == 49:
			pen.Bg = 0
		case p == 58:
			i += extendedColor(&pen.UnderlineColor, c, i)
		case p == 59:
			pen.UnderlineColor = 0
		case p >= 90 && p <= 97:
			pen.Fg = Palette(uint8(p - 90 + 8))
		case p >= 100 && p <= 107:
			pen.Bg = Palette(uint8(p - 100 + 8))
		case p < len(attributeChanges):
			change := attributeChanges[p]
			pen.Attributes = pen.Attributes&^change.reset | change.set
		}
	}
	if pen != s.pen {
		s.setPen(pen)
	}
}

// extendedColor reads the colour that follows the value i, which is 38, 48 or 58, and returns
// how many further parameters it takes. The forms are 38;5;n, 38;2;r;g;b, 38:5:n, 38:2:r:g:b
// and, with an id of a colour space, 38:2:id:r:g:b. Values that are missing are 0.
func extendedColor(color *Color, c *vt.Control, i int) (used int) {
	used = min(c.Len()-i-1, 4)
	sub, red := used > 0 && c.Sub(i+1), 2
	if sub {
		for used = 1; i+1+used < c.Len() && c.Sub(i+1+used); used++ {
		}
		if used != 4 {
			red = 3
		}
	}
	at := func(k int) int {
		if k > used {
			return 0
		}
		return max(c.Value(i+k), 0)
	}
	switch at(1) {
	case 2:
		*color = RGB(uint8(at(red)), uint8(at(red+1)), uint8(at(red+2)))
	case 5:
		*color = Palette(uint8(at(2)))
		if !sub {
			used = min(used, 2)
		}
	}
	return used
}
