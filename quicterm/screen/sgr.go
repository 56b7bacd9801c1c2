package screen

import "github.com/quicterm/quicterm/quicterm/screen/vt"

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
		case p >= 1 && p <= 9:
			setAttribute(&pen, c, i)
		case p == 21:
			pen.Underline = DoubleUnderline
		case p == 22:
			pen.Attributes &^= Bold | Dim
		case p == 23:
			pen.Attributes &^= Italic
		case p == 24:
			pen.Underline = NoUnderline
		case p == 25:
			pen.Attributes &^= Blink
		case p == 27:
			pen.Attributes &^= Inverse
		case p == 28:
			pen.Attributes &^= Hidden
		case p == 29:
			pen.Attributes &^= Strike
		case p >= 30 && p <= 37:
			pen.Fg = Palette(uint8(p - 30))
		case p >= 40 && p <= 47:
			pen.Bg = Palette(uint8(p - 40))
		case p >= 90 && p <= 97:
			pen.Fg = Palette(uint8(p - 90 + 8))
		case p >= 100 && p <= 107:
			pen.Bg = Palette(uint8(p - 100 + 8))
		case p == 38:
			i += extendedColor(&pen.Fg, c, i)
		case p == 48:
			i += extendedColor(&pen.Bg, c, i)
		case p == 58:
			i += extendedColor(&pen.UnderlineColor, c, i)
		case p == 39:
			pen.Fg = 0
		case p == 49:
			pen.Bg = 0
		case p == 59:
			pen.UnderlineColor = 0
		case p == 53:
			pen.Attributes |= Overline
		case p == 55:
			pen.Attributes &^= Overline
		}
	}
	if pen != s.pen {
		s.setPen(pen)
	}
}

// setAttribute obeys the value i, which is 1 to 9.
func setAttribute(pen *Style, c *vt.Control, i int) {
	switch c.Value(i) {
	case 1:
		pen.Attributes |= Bold
	case 2:
		pen.Attributes |= Dim
	case 3:
		pen.Attributes |= Italic
	case 4:
		pen.Underline = SingleUnderline
		if i+1 < c.Len() && c.Sub(i+1) {
			if u := c.Value(i + 1); u >= 0 && u <= int(DashedUnderline) {
				pen.Underline = Underline(u)
			}
		}
	case 5:
		pen.Attributes |= Blink
	case 7:
		pen.Attributes |= Inverse
	case 8:
		pen.Attributes |= Hidden
	case 9:
		pen.Attributes |= Strike
	}
}

// extendedColor reads the colour that follows the value i, which is 38, 48 or 58, and returns
// how many further parameters it takes. The forms are 38;5;n, 38;2;r;g;b, 38:5:n, 38:2:r:g:b
// and, with an id of a colour space, 38:2:id:r:g:b. Values that are missing are 0.
func extendedColor(color *Color, c *vt.Control, i int) (used int) {
	if i+1 < c.Len() && c.Sub(i+1) {
		n := 0
		for i+1+n < c.Len() && c.Sub(i+1+n) {
			n++
		}
		at := func(k int) uint8 {
			if k > n {
				return 0
			}
			return uint8(max(c.Value(i+k), 0))
		}
		switch kind := c.Value(i + 1); {
		case kind == 5:
			*color = Palette(at(2))
		case kind == 2 && n == 4:
			*color = RGB(at(2), at(3), at(4))
		case kind == 2:
			*color = RGB(at(3), at(4), at(5))
		}
		return n
	}
	used = min(c.Len()-i-1, 4)
	at := func(k int) uint8 {
		if k > used {
			return 0
		}
		return uint8(c.Value(i + k))
	}
	switch {
	case used > 0 && c.Value(i+1) == 5:
		*color = Palette(at(2))
		used = min(used, 2)
	case used > 0 && c.Value(i+1) == 2:
		*color = RGB(at(2), at(3), at(4))
	}
	return used
}
