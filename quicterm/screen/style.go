package screen

import (
	"math"

	"github.com/quicterm/quicterm/quicterm/screen/pool"
)

// A Color is a colour of a cell: the zero value is the terminal's default.
type Color uint32

const (
	paletteColor Color = 1 << 24
	rgbColor     Color = 2 << 24
)

// Palette returns the colour i of the palette.
func Palette(i uint8) Color { return paletteColor | Color(i) }

// RGB returns a colour by its parts.
func RGB(r, g, b uint8) Color {
	return rgbColor | Color(r)<<16 | Color(g)<<8 | Color(b)
}

// Palette returns the index in the palette, and whether c is a colour of the palette.
func (c Color) Palette() (i uint8, ok bool) { return uint8(c), c&paletteColor != 0 }

// RGB returns the parts, and whether c is given by them.
func (c Color) RGB() (r, g, b uint8, ok bool) {
	return uint8(c >> 16), uint8(c >> 8), uint8(c), c&rgbColor != 0
}

// Attributes are the attributes of a cell.
type Attributes uint16

const (
	Bold Attributes = 1 << iota
	Dim
	Italic
	Blink
	Inverse
	Hidden
	Strike
	Overline
	Protected // not erased by selective erase
)

// An Underline is the style of a cell's underline, as SGR 4:n numbers it.
type Underline uint8

const (
	NoUnderline Underline = iota
	SingleUnderline
	DoubleUnderline
	CurlyUnderline
	DottedUnderline
	DashedUnderline
)

// A Style is how a cell looks. The zero value is the default.
type Style struct {
	Fg, Bg         Color
	UnderlineColor Color
	Attributes     Attributes
	Underline      Underline
	Link           Link
}

// A Link names a hyperlink of a Screen: see Screen.Hyperlink. 0 is none.
type Link uint32

// A styleID stands for a Style in cells. 0 is the default style.
type styleID uint32

// styles keeps each style once, so that a cell is 8 bytes and styles are compared by id.
type styles struct {
	pool.Pool[Style]
	recent [64]struct { // a cache: programs alternate between few styles
		style Style
		id    styleID
	}
}

func (s *styles) get(id styleID) Style { return s.List[id] }

// id returns the id of a style, and adds it if it is new.
func (s *styles) id(style Style) styleID {
	if style == (Style{}) {
		return 0
	}
	h := uint32(style.Fg)*0x9e3779b1 ^ uint32(style.Bg)*0x85ebca6b ^ uint32(style.Attributes)*0xc2b2ae35 ^
		uint32(style.Underline)<<28 ^ uint32(style.Link)*0x27d4eb2f
	r := &s.recent[h>>26]
	if r.style != style || r.id == 0 {
		id, _ := s.Pool.ID(style, math.MaxInt)
		r.style, r.id = style, styleID(id)
	}
	return r.id
}

// sweep frees the styles that are not in use.
func (s *styles) sweep(used []bool) {
	s.Pool.Sweep(used)
	clear(s.recent[:])
}
