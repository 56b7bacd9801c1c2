package screen

import (
	"bytes"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/screen/marks"
	"github.com/quicterm/quicterm/quicterm/screen/vt"
)

// In a flood of text most rows leave the screen, and then the scrollback, within one Write. Write does
// not draw those rows. It counts them, so that the state is the same as if it had drawn them.
const (
	// minSkip is how many bytes at least are skipped at once, and how often Write looks for
	// text to skip: looking costs little beside drawing as much.
	minSkip = 4 << 10

	// maxDraw bounds the bytes that are drawn between two sweeps.
	maxDraw = 64 << 10
)

// Write obeys output of a program. It never fails.
func (s *Screen) Write(b []byte) (int, error) {
	size, text := len(b), 0
	for len(b) > 0 {
		if text == 0 {
			var skipped int
			skipped, text = s.skipText(b)
			b = b[skipped:]
		}
		n := min(max(text, minSkip), maxDraw, len(b))
		s.parser.Parse(b[:n], (*handler)(s))
		s.sweep()
		b, text = b[n:], max(text-n, 0)
	}
	return size, nil
}

// skipText skips lines at the start of b that leave the scrollback before the text in b ends. It
// returns the number of bytes skipped, and how many bytes of text follow them.
func (s *Screen) skipText(b []byte) (skipped, text int) {
	rows := s.limits.Lines + s.rows - 1 // that have to scroll before no earlier one is left
	if len(b) < minSkip || !s.flows() || bytes.Count(b, []byte("\n")) < rows {
		return 0, 0
	}
	last := s.buf.row(s.y)
	f := flow{s: s, x: s.x, wrapped: last.wrapped}
	flows := f.follow(b)
	text = f.at
	for n := len(flows); n > 0; n-- {
		m := flows[n-1]
		if f.rows-m.rows < rows {
			continue
		}
		for rest := b[m.pen:m.penEnd]; len(rest) > 0; {
			n := vt.TextPart(rest)
			if rest[n-1] == 'm' && rest[0] == esc {
				s.parser.Parse(rest[:n], (*handler)(s))
			}
			rest = rest[n:]
		}
		s.history.pushed += uint64(m.rows)
		s.lastLine += uint64(m.lines)
		s.x, s.repeat = m.x, false
		last.wrapped, last.mark, last.line = false, marks.Row{}, s.lastLine
		last.fill(s.eraser())
		return m.at, text - m.at
	}
	return 0, text
}

// flows reports whether text appears in the last row, and each line feed scrolls the whole main screen.
func (s *Screen) flows() bool {
	return s.parser.Ground() && s.buf == s.main && s.y == s.rows-1 && s.buf.whole(s.cols) &&
		s.modes&modeWrap != 0 && !s.charsets.Translates()
}

// A flow follows where the cursor is in text that begins in the last row.
type flow struct {
	s       *Screen
	at      int // bytes that were followed
	x       int
	wrapped bool // the last row continues the one above
	rows    int  // that have scrolled
	lines   int  // line ids that were given

	pen, penEnd int // the part of the text that has the sequences since the pen was reset, and these
}

// follow follows the text at the start of b. Of the states just after a line feed it returns about one
// each minSkip bytes.
func (f *flow) follow(b []byte) (marks []flow) {
	cols := f.s.cols
	marked := 0
	for f.at < len(b) {
		n := vt.Printable(b[f.at:])
		f.at += n
		if f.x += n; f.x > cols {
			f.wrap()
		}
		if f.at == len(b) {
			break
		}
		switch c := b[f.at]; c {
		case '\r':
			f.x = 0
			f.at++
		case '\n':
			f.rows++
			f.lines++
			f.wrapped = false
			if f.x = min(f.x, cols-1); f.s.modes&modeNewLine != 0 {
				f.x = 0
			}
			f.at++
			if f.at-marked >= minSkip {
				marks = append(marks, *f)
				marked = f.at
			}
		default:
			n := vt.TextPart(b[f.at:])
			if n == 0 {
				return marks
			}
			f.other(b[f.at : f.at+n])
			f.at += n
		}
	}
	return marks
}

// other follows a tab, a control sequence, or a character that is not ASCII.
func (f *flow) other(part []byte) {
	switch c := part[0]; {
	case c == '\t':
		for f.x < f.s.cols-1 {
			if f.x++; f.s.tabs[f.x] {
				break
			}
		}
	case c == esc && part[2] == 'K':
		if f.x == 0 && f.wrapped { // EL makes the row a line of its own
			f.wrapped = false
			f.lines++
		}
	case c == esc:
		if f.penEnd == 0 || len(part) == 3 || len(part) == 4 && part[2] == '0' { // SGR 0
			f.pen = f.at
		}
		f.penEnd = f.at + len(part)
	default:
		r, _ := utf8.DecodeRune(part)
		width := RuneWidth(r)
		if width == 2 && f.x == f.s.cols-1 {
			f.x++ // it does not fit
		}
		if f.x += width; f.x > f.s.cols {
			f.wrap()
		}
	}
}

// wrap puts a cursor that is beyond the last column into a later row.
func (f *flow) wrap() {
	n := (f.x - 1) / f.s.cols
	f.x -= n * f.s.cols
	f.rows += n
	f.lines += n
	f.wrapped = true
}
