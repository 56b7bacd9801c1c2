package demo

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/picture"
)

// A movie is an animated SVG image of a screen: CSS moves it, without a script, so that it plays
// where scripts are not allowed.
//
// Each row of the screen is a strip of all that the row ever shows, one below the other, behind a
// window of one row. At a change the strip jumps to the new content. What comes again is drawn once.
type movie struct {
	cols, rows int
	strips     []strip // of the title, of the rows, and of the caption
	cursor     []jump
	at         time.Duration // of the last frame
}

// A strip is what a row shows, and when.
type strip struct {
	drawn []string // each content once
	jumps []jump
}

// A jump puts something to another place at a time. Offsets are in pixels.
type jump struct {
	at   time.Duration
	x, y int
}

const (
	// cellWidth, cellHeight and baseline are those of cells with svgFontSize, in pixels.
	cellWidth, cellHeight, baseline = 9, 19, 14
	svgFontSize                     = 15

	// off is the offset of a hidden cursor: outside of the image.
	off = -1000
)

// newMovie returns a movie of screens with a size.
func newMovie(cols, rows int) *movie {
	return &movie{cols: cols, rows: rows, strips: make([]strip, rows+2)}
}

// The usual colours.
var foreground, background = picture.Colors(screen.Style{})

// show adds what is seen from a time on, which is not before the last one: a screen with its title
// above it, and a caption below. Rows and columns beyond the size are left out.
func (m *movie) show(at time.Duration, s *screen.Screen, title, caption string) {
	m.at = at
	m.strips[0].show(at, label(title, m.cols*cellWidth/2, `class="t"`))
	cols, rows := s.Size()
	for y := range min(m.rows, rows) {
		m.strips[1+y].show(at, svgRow(s.Row(y), min(m.cols, cols)))
	}
	m.strips[1+m.rows].show(at, label(caption, m.cols*cellWidth/2, `class="c"`))
	place := jump{at: at, x: off}
	if x, y := s.Cursor(); !s.CursorHidden() && y < m.rows {
		place.x, place.y = min(x, m.cols-1)*cellWidth, y*cellHeight
	}
	m.cursor = addJump(m.cursor, place)
}

// show adds what a row shows from a time on.
func (s *strip) show(at time.Duration, content string) {
	n := slices.Index(s.drawn, content)
	if n < 0 {
		n = len(s.drawn)
		s.drawn = append(s.drawn, content)
	}
	s.jumps = addJump(s.jumps, jump{at: at, y: -n * cellHeight})
}

// addJump adds a jump unless it leads to where the last one does. Of those at one time, the last counts.
func addJump(jumps []jump, j jump) []jump {
	if n := len(jumps); n > 0 && jumps[n-1].at == j.at {
		jumps = jumps[:n-1]
	}
	if n := len(jumps); n > 0 && jumps[n-1].x == j.x && jumps[n-1].y == j.y {
		return jumps
	}
	return append(jumps, j)
}

// write writes the movie. It shows the last frame for a time, and then begins again.
func (m *movie) write(w io.Writer, last time.Duration) error {
	const pad = 12
	total := m.at + last
	width, height := m.cols*cellWidth+2*pad, (m.rows+2)*cellHeight+3*pad
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d">
<style>
text{font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace}
text{white-space:pre;fill:%s}.t,.c{text-anchor:middle}.t{fill:#9a9aa2}.c{font-weight:bold;fill:#ffd75f}
.b{font-weight:bold}.i{font-style:italic}.u{text-decoration:underline}
g.s{animation-duration:%.3fs;animation-timing-function:step-end;animation-iteration-count:infinite}
`, width, height, width, height, svgFontSize, hex(foreground), total.Seconds())
	for i, s := range m.strips {
		keyframes(&b, fmt.Sprintf("r%d", i), s.jumps, total)
	}
	keyframes(&b, "k", m.cursor, total)
	fmt.Fprintf(&b, "</style>\n<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"%s\"/>\n", width, height, hex(background))
	fmt.Fprintf(&b, `<path d="M%d %dh%d" stroke="#3a3a44"/>`+"\n", pad, pad/2+cellHeight+2, m.cols*cellWidth)
	top := pad + cellHeight + pad/2 // of the screen
	for i, s := range m.strips {
		y := top + (i-1)*cellHeight
		if i == 0 {
			y = pad / 2
		} else if i > m.rows {
			y += pad
		}
		fmt.Fprintf(&b, `<svg x="%d" y="%d" width="%d" height="%d">`, pad, y, m.cols*cellWidth, cellHeight)
		fmt.Fprintf(&b, `<g class="s" style="animation-name:r%d">`, i)
		for n, content := range s.drawn {
			if content != "" {
				fmt.Fprintf(&b, `<g transform="translate(0,%d)">%s</g>`, n*cellHeight, content)
			}
		}
		b.WriteString("</g></svg>\n")
	}
	fmt.Fprintf(&b, `<svg x="%d" y="%d" width="%d" height="%d"><g class="s" style="animation-name:k">`, pad, top,
		m.cols*cellWidth, m.rows*cellHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="%s" fill-opacity=".6"/></g></svg>`+"\n</svg>\n", cellWidth,
		cellHeight, hex(foreground))
	_, err := w.Write(b.Bytes())
	return err
}

// keyframes writes an animation: until the next jump, everything stays where it is.
func keyframes(b *bytes.Buffer, name string, jumps []jump, total time.Duration) {
	fmt.Fprintf(b, "@keyframes %s{", name)
	for _, j := range jumps {
		percent := 100 * j.at.Seconds() / total.Seconds()
		fmt.Fprintf(b, "%.5g%%{transform:translate(%dpx,%dpx)}", percent, j.x, j.y)
	}
	b.WriteString("}\n")
}

// label returns text around a place.
func label(s string, x int, attributes string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf(`<text x="%d" y="%d" %s>%s</text>`, x, baseline, attributes, escape(s))
}

// svgRow returns the columns of a row: a text for each piece in one style, as wide as its columns.
func svgRow(row screen.Row, cols int) string {
	var b strings.Builder
	for x := 0; x < cols; {
		style, from, piece := row.Cell(x).Style, x, ""
		for x < cols && row.Cell(x).Style == style {
			c := row.Cell(x)
			if c.Width > 0 {
				piece += picture.Shown(c)
			}
			x += max(c.Width, 1)
		}
		appendPiece(&b, style, from, x-from, piece)
	}
	return b.String()
}

func appendPiece(b *strings.Builder, style screen.Style, from, columns int, piece string) {
	has := func(a screen.Attributes) bool { return style.Attributes&a != 0 }
	fg, bg := picture.Colors(style)
	if bg != background {
		fmt.Fprintf(b, `<rect x="%d" width="%d" height="%d" fill="%s"/>`, from*cellWidth, columns*cellWidth, cellHeight,
			hex(bg))
	}
	plain := style.Underline == screen.NoUnderline
	if blanks := len(piece) - len(strings.TrimLeft(piece, " ")); plain && blanks > 0 {
		piece, from, columns = piece[blanks:], from+blanks, columns-blanks
	}
	if plain {
		columns -= len(piece) - len(strings.TrimRight(piece, " "))
		piece = strings.TrimRight(piece, " ")
	}
	if piece == "" {
		return
	}
	var classes []string
	for _, c := range []struct {
		set  bool
		name string
	}{{has(screen.Bold), "b"}, {has(screen.Italic), "i"}, {!plain, "u"}} {
		if c.set {
			classes = append(classes, c.name)
		}
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" textLength="%d" lengthAdjust="spacingAndGlyphs"`, from*cellWidth, baseline,
		columns*cellWidth)
	if len(classes) > 0 {
		fmt.Fprintf(b, ` class="%s"`, strings.Join(classes, " "))
	}
	if fg != foreground {
		fmt.Fprintf(b, ` style="fill:%s"`, hex(fg))
	}
	fmt.Fprintf(b, ">%s</text>", escape(piece))
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// escape returns text as it stands in XML.
func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s))
	return b.String()
}
