package screen

import "fmt"

// style makes the pen of the terminal draw in a style.
func (r *renderer) style(to Style) {
	if to == r.pen {
		return
	}
	from := r.pen
	r.pen = to
	if from.Link != to.Link {
		h := r.s.Hyperlink(to.Link)
		r.addf("\x1b]8;%s;%s\x1b\\", h.Parameters, h.URI)
		from.Link = to.Link
	}
	protected := to.Attributes & Protected
	if from.Attributes&Protected != protected {
		r.addf("\x1b[%d\"q", protected/Protected)
		from.Attributes ^= Protected
	}
	if from == to {
		return
	}
	change := appendCodes(nil, from, to)
	anew := appendCodes([]byte("0;"), Style{}, to)
	switch {
	case len(anew) == len("0;"):
		r.add("\x1b[m")
	case len(anew) < len(change):
		r.addf("\x1b[%sm", anew[:len(anew)-1])
	default:
		r.addf("\x1b[%sm", change[:len(change)-1])
		return
	}
	if protected != 0 {
		r.add("\x1b[1\"q") // some terminals reset it by SGR 0
	}
}

// background makes the pen's background a colour, for erasing.
func (r *renderer) background(bg Color) {
	if r.pen.Bg != bg {
		r.style(Style{Bg: bg})
	}
}

// appendCodes appends the parameters of SGR, each with a semicolon, that change a style.
func appendCodes(b []byte, from, to Style) []byte {
	off := from.Attributes &^ to.Attributes
	on := to.Attributes &^ from.Attributes
	for i, a := range attributeCodes {
		if off&a.attribute == 0 {
			continue
		}
		if a.off == 22 {
			if i == 1 && off&Bold != 0 {
				continue // Bold has reset both
			}
			on |= to.Attributes & (Bold | Dim)
		}
		b = fmt.Appendf(b, "%d;", a.off)
	}
	for _, a := range attributeCodes {
		if on&a.attribute != 0 {
			b = fmt.Appendf(b, "%d;", a.on)
		}
	}
	if from.Underline != to.Underline {
		switch to.Underline {
		case NoUnderline:
			b = append(b, "24;"...)
		case SingleUnderline:
			b = append(b, "4;"...)
		default:
			b = fmt.Appendf(b, "4:%d;", to.Underline)
		}
	}
	if from.Fg != to.Fg {
		b = appendColor(b, to.Fg, 30)
	}
	if from.Bg != to.Bg {
		b = appendColor(b, to.Bg, 40)
	}
	if from.UnderlineColor != to.UnderlineColor {
		b = appendUnderlineColor(b, to.UnderlineColor)
	}
	return b
}

// appendColor appends the parameters for a colour, of which base is the one for black.
func appendColor(b []byte, c Color, base int) []byte {
	if c == 0 {
		return fmt.Appendf(b, "%d;", base+9)
	}
	if red, green, blue, ok := c.RGB(); ok {
		return fmt.Appendf(b, "%d;2;%d;%d;%d;", base+8, red, green, blue)
	}
	switch i, _ := c.Palette(); {
	case i < 8:
		return fmt.Appendf(b, "%d;", base+int(i))
	case i < 16:
		return fmt.Appendf(b, "%d;", base+60+int(i)-8)
	default:
		return fmt.Appendf(b, "%d;5;%d;", base+8, i)
	}
}

// appendUnderlineColor uses sub-parameters: with parameters, some terminals take the rest as attributes.
func appendUnderlineColor(b []byte, c Color) []byte {
	if c == 0 {
		return append(b, "59;"...)
	}
	if red, green, blue, ok := c.RGB(); ok {
		return fmt.Appendf(b, "58:2::%d:%d:%d;", red, green, blue)
	}
	i, _ := c.Palette()
	return fmt.Appendf(b, "58:5:%d;", i)
}
