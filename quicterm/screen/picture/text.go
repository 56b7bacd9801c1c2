// Package picture shows a [screen.Screen] as text, as text with colours, and as a PNG image.
//
// The contents of a screen come from a program that may be hostile: no output has a control
// character of it. Hidden text is left out, as on a terminal.
package picture

import (
	"bufio"
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// Text writes rows as lines of text, without blanks at their ends and without empty lines at the end.
func Text(w io.Writer, rows []screen.Row) error { return lines(w, rows, false) }

// ANSI writes what Text does, with the control sequences for colours and attributes. At the end of
// each line they are the usual ones.
func ANSI(w io.Writer, rows []screen.Row) error { return lines(w, rows, true) }

func lines(w io.Writer, rows []screen.Row, styled bool) error {
	out := bufio.NewWriter(w)
	for len(rows) > 0 && width(rows[len(rows)-1], styled) == 0 {
		rows = rows[:len(rows)-1]
	}
	var line []byte
	for _, row := range rows {
		line = append(appendRow(line[:0], row, styled), '\n')
		out.Write(line)
	}
	return out.Flush()
}

// Line returns a row as Text writes it, without the end of the line.
func Line(row screen.Row) string { return string(appendRow(nil, row, false)) }

func appendRow(line []byte, row screen.Row, styled bool) []byte {
	return appendColumns(line, row, 0, width(row, styled), styled)
}

// AppendColumns appends the columns of a row from one up to another, as ANSI writes them, without
// blanks at the end. Half of a wide character is a blank.
func AppendColumns(line []byte, row screen.Row, from, to int) []byte {
	return appendColumns(line, row, from, min(to, width(row, true)), true)
}

func appendColumns(line []byte, row screen.Row, from, to int, styled bool) []byte {
	var pen screen.Style
	for x := from; x < to; x++ {
		c := row.Cell(x)
		half := c.Width == 0 && x == from || c.Width == 2 && x == to-1
		if c.Width == 0 && !half {
			continue
		}
		if style := look(c.Style); styled && style != pen {
			line = appendSGR(line, style)
			pen = style
		}
		if half {
			line = append(line, ' ')
		} else {
			line = append(line, Shown(c)...)
		}
	}
	if pen != (screen.Style{}) {
		line = appendSGR(line, screen.Style{})
	}
	return line
}

// width returns the number of columns of a row without the blank ones at its end.
func width(row screen.Row, styled bool) int {
	n := row.Len()
	for n > 0 {
		c := row.Cell(n - 1)
		style := look(c.Style)
		style.Fg, style.UnderlineColor = 0, 0
		style.Attributes &= screen.Inverse | screen.Strike | screen.Overline
		if c.Width == 0 || Shown(c) != " " || styled && style != (screen.Style{}) {
			break
		}
		n--
	}
	return n
}

// look returns the part of a style that can be seen.
func look(style screen.Style) screen.Style {
	style.Link = 0
	style.Attributes &^= screen.Hidden | screen.Protected
	return style
}

// Shown returns the character that a cell shows, or blanks.
func Shown(c screen.Cell) string {
	first, _ := utf8.DecodeRuneInString(c.Text)
	switch {
	case c.Text == "" || unicode.IsControl(first):
		return " "
	case c.Style.Attributes&screen.Hidden != 0 && c.Width == 2:
		return "  "
	case c.Style.Attributes&screen.Hidden != 0:
		return " "
	}
	return c.Text
}

// sgr are the parameters of attributes.
var sgr = []struct {
	attribute screen.Attributes
	parameter string
}{
	{screen.Bold, "1"}, {screen.Dim, "2"}, {screen.Italic, "3"}, {screen.Blink, "5"},
	{screen.Inverse, "7"}, {screen.Strike, "9"}, {screen.Overline, "53"},
}

// appendSGR appends the control sequence that sets a style.
func appendSGR(b []byte, style screen.Style) []byte {
	b = append(b, "\x1b[0"...)
	for _, a := range sgr {
		if style.Attributes&a.attribute != 0 {
			b = append(append(b, ';'), a.parameter...)
		}
	}
	switch style.Underline {
	case screen.NoUnderline:
	case screen.SingleUnderline:
		b = append(b, ";4"...)
	default:
		b = strconv.AppendInt(append(b, ";4:"...), int64(style.Underline), 10)
	}
	b = appendColor(b, style.Fg, 30)
	b = appendColor(b, style.Bg, 40)
	b = appendColor(b, style.UnderlineColor, 50)
	return append(b, 'm')
}

// appendColor appends the parameters of a colour. Base is that of its first colour: 30 for
// characters, 40 for the background, 50 for underlines, which have the long form only.
func appendColor(b []byte, c screen.Color, base int64) []byte {
	number := func(prefix string, n int64) { b = strconv.AppendInt(append(b, prefix...), n, 10) }
	if i, ok := c.Palette(); ok {
		switch {
		case i < 8 && base != 50:
			number(";", base+int64(i))
		case i < 16 && base != 50:
			number(";", base+60+int64(i-8))
		default:
			number(";", base+8)
			number(";5;", int64(i))
		}
	}
	if red, green, blue, ok := c.RGB(); ok {
		number(";", base+8)
		number(";2;", int64(red))
		number(";", int64(green))
		number(";", int64(blue))
	}
	return b
}
