//go:build !js

package picture

import (
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"maps"
	"slices"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/quicterm/quicterm/quicterm/screen"
)

const (
	// fontSize is the height of the font in pixels: cells are 10 by 20.
	fontSize = 16

	// margin is the space around the screen in pixels.
	margin = 8

	// maxCells bounds an image to about 80 MB of memory: the size of a screen comes from a peer.
	maxCells = 100_000
)

// ErrTooLarge means that a screen is too large for an image.
var ErrTooLarge = errors.New("the screen is too large for an image")

// The usual colours.
var (
	foreground = color.RGBA{0xd8, 0xd8, 0xd8, 0xff}
	background = color.RGBA{0x14, 0x14, 0x18, 0xff}
)

// PNG writes an image of the screen. Characters that the Go Mono font does not have, such as those of CJK and emoji,
// are boxes, and marks over others are left out: it returns them all, in order. The cursor is a block, unless it is
// hidden.
func PNG(w io.Writer, s *screen.Screen) (missing []rune, err error) {
	cols, rows := s.Size()
	if cols*rows > maxCells {
		return nil, ErrTooLarge
	}
	d, err := newDrawing(cols, rows)
	if err != nil {
		return nil, err
	}
	for y := range rows {
		row := s.Row(y)
		for x := range row.Len() {
			if c := row.Cell(x); c.Width > 0 {
				d.cell(x, y, c)
			}
		}
	}
	if !s.CursorHidden() {
		d.cursor(s)
	}
	return slices.Sorted(maps.Keys(d.missing)), png.Encode(w, d.image)
}

// A drawing is an image of a screen.
type drawing struct {
	image         *image.RGBA
	regular, bold font.Face
	width, height int // of a cell
	ascent        int // of the font
	missing       map[rune]bool
}

func newDrawing(cols, rows int) (*drawing, error) {
	d := &drawing{missing: make(map[rune]bool)}
	for _, f := range []struct {
		face *font.Face
		data []byte
	}{{&d.regular, gomono.TTF}, {&d.bold, gomonobold.TTF}} {
		parsed, err := opentype.Parse(f.data)
		if err != nil {
			return nil, err
		}
		*f.face, err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: fontSize, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			return nil, err
		}
	}
	metrics := d.regular.Metrics()
	advance, _ := d.regular.GlyphAdvance('0')
	d.width, d.ascent = advance.Round(), metrics.Ascent.Ceil()
	d.height = d.ascent + metrics.Descent.Ceil()
	d.image = image.NewRGBA(image.Rect(0, 0, cols*d.width+2*margin, rows*d.height+2*margin))
	d.fill(d.image.Rect, background)
	return d, nil
}

func (d *drawing) fill(r image.Rectangle, c color.Color) {
	draw.Draw(d.image, r, image.NewUniform(c), image.Point{}, draw.Src)
}

// cell draws a cell, whose column is x and whose row is y.
func (d *drawing) cell(x, y int, c screen.Cell) {
	at := image.Pt(margin+x*d.width, margin+y*d.height)
	area := image.Rectangle{at, at.Add(image.Pt(c.Width*d.width, d.height))}
	fg, bg := Colors(c.Style)
	has := func(a screen.Attributes) bool { return c.Style.Attributes&a != 0 }
	if bg != background {
		d.fill(area, bg)
	}
	if has(screen.Hidden) {
		return
	}
	face := d.regular
	if has(screen.Bold) {
		face = d.bold
	}
	for i, r := range Shown(c) { // combining marks are drawn over the character before
		if d.glyph(area, face, fg, r) {
			continue
		}
		d.missing[r] = true
		if i == 0 {
			d.box(area.Inset(2), fg)
		}
	}
	line := func(y int, c color.Color) { d.fill(image.Rect(area.Min.X, y, area.Max.X, y+1), c) }
	if c.Style.Underline != screen.NoUnderline {
		line(at.Y+d.ascent+2, rgb(c.Style.UnderlineColor, fg))
	}
	if c.Style.Underline == screen.DoubleUnderline {
		line(at.Y+d.ascent, rgb(c.Style.UnderlineColor, fg))
	}
	if has(screen.Strike) {
		line(at.Y+d.ascent*2/3, fg)
	}
	if has(screen.Overline) {
		line(at.Y, fg)
	}
}

// cursor draws the cell with the cursor in its colours exchanged.
func (d *drawing) cursor(s *screen.Screen) {
	x, y := s.Cursor()
	row := s.Row(y)
	x = min(x, row.Len()-1)
	c := row.Cell(x)
	if c.Width == 0 {
		x--
		c = row.Cell(x)
	}
	c.Style.Attributes ^= screen.Inverse
	_, under := Colors(c.Style)
	at := image.Pt(margin+x*d.width, margin+y*d.height)
	d.fill(image.Rectangle{at, at.Add(image.Pt(c.Width*d.width, d.height))}, under) // cell draws no usual background
	d.cell(x, y, c)
}

// square are characters that the font has only with corners.
var square = map[rune]rune{'╭': '┌', '╮': '┐', '╯': '┘', '╰': '└'}

func (d *drawing) glyph(area image.Rectangle, face font.Face, c color.Color, r rune) (drawn bool) {
	if s, ok := square[r]; ok {
		r = s
	}
	if _, ok := face.GlyphAdvance(r); !ok {
		return false
	}
	to := font.Drawer{
		Dst:  d.image.SubImage(area).(draw.Image),
		Src:  image.NewUniform(c),
		Face: face,
		Dot:  fixed.P(area.Min.X, area.Min.Y+d.ascent),
	}
	to.DrawString(string(r))
	return true
}

func (d *drawing) box(r image.Rectangle, c color.Color) {
	d.fill(image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+1), c)
	d.fill(image.Rect(r.Min.X, r.Max.Y-1, r.Max.X, r.Max.Y), c)
	d.fill(image.Rect(r.Min.X, r.Min.Y, r.Min.X+1, r.Max.Y), c)
	d.fill(image.Rect(r.Max.X-1, r.Min.Y, r.Max.X, r.Max.Y), c)
}

// Colors returns the colours of characters in a style, and of what is behind them.
func Colors(style screen.Style) (fg, bg color.RGBA) {
	fg, bg = rgb(style.Fg, foreground), rgb(style.Bg, background)
	if style.Attributes&screen.Inverse != 0 {
		fg, bg = bg, fg
	}
	if style.Attributes&screen.Dim != 0 {
		fg = mix(fg, bg)
	}
	return fg, bg
}

// mix returns the colour between two.
func mix(a, b color.RGBA) color.RGBA {
	half := func(a, b uint8) uint8 { return uint8((int(a) + int(b)) / 2) }
	return color.RGBA{half(a.R, b.R), half(a.G, b.G), half(a.B, b.B), 0xff}
}

// rgb returns a colour of a screen.
func rgb(c screen.Color, preset color.RGBA) color.RGBA {
	if r, g, b, ok := c.RGB(); ok {
		return color.RGBA{r, g, b, 0xff}
	}
	i, ok := c.Palette()
	if !ok {
		return preset
	}
	return palette(i)
}

// named are the first 16 colours of the palette: xterm's, with a lighter blue.
var named = [16]uint32{
	0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x1e90ff, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
	0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
}

// palette returns a colour of xterm's palette: 16 named ones, a cube of 6×6×6, 24 greys.
func palette(i uint8) color.RGBA {
	switch {
	case i < 16:
		return color.RGBA{uint8(named[i] >> 16), uint8(named[i] >> 8), uint8(named[i]), 0xff}
	case i >= 232:
		grey := 8 + 10*(i-232)
		return color.RGBA{grey, grey, grey, 0xff}
	}
	level := func(n uint8) uint8 {
		if n == 0 {
			return 0
		}
		return 55 + 40*n
	}
	i -= 16
	return color.RGBA{level(i / 36), level(i / 6 % 6), level(i % 6), 0xff}
}
