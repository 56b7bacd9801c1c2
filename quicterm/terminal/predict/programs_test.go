package predict_test

import (
	"fmt"
	"strings"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A shell edits lines as readline does, and runs a few commands.
type shell struct {
	prompt string
	line   []rune
	at     int
	tail   []byte // of an escape sequence or a character
	run    program
}

func (s *shell) hello() string { return "\x1b[?2004h" + s.prompt }

func (s *shell) terminal() (wire.TerminalFlags, uint16) {
	if s.run != nil {
		return s.run.terminal()
	}
	return wire.Shell | usual, 1
}

func (s *shell) input(b byte) string {
	if s.run != nil {
		out := s.run.input(b)
		if b == 4 || b == '\r' && s.once() || out == mainScreen {
			s.run = nil
			out += s.hello()
		}
		return out
	}
	s.tail = append(s.tail, b)
	k := string(s.tail)
	switch {
	case k == "\x1b" || k == "\x1b[" || b >= 0xc0:
		return ""
	case b >= 0x80 && len(s.tail) < 3 && s.tail[0] >= 0xe0:
		return ""
	}
	s.tail = s.tail[:0]
	switch k {
	case "\r":
		return s.enter()
	case "\x7f":
		if s.at == 0 {
			return ""
		}
		s.line = append(s.line[:s.at-1:s.at-1], s.line[s.at:]...)
		s.at--
		return "\b" + s.rest()
	case "\x1b[D":
		if s.at > 0 {
			s.at--
			return "\b"
		}
		return ""
	case "\x1b[C":
		if s.at < len(s.line) {
			s.at++
			return "\x1b[C"
		}
		return ""
	case "\x01":
		n := s.at
		s.at = 0
		return strings.Repeat("\b", n)
	case "\t":
		return ""
	}
	s.line = append(s.line[:s.at:s.at], append([]rune(k), s.line[s.at:]...)...)
	s.at++
	return k + s.rest()
}

func (s *shell) rest() string {
	out := "\x1b[K" + string(s.line[s.at:])
	if n := len(s.line) - s.at; n > 0 {
		out += fmt.Sprintf("\x1b[%dD", n)
	}
	return out
}

// once reports whether the running program ends with its first line.
func (s *shell) once() bool { _, ok := s.run.(*password); return ok }

func (s *shell) enter() string {
	command := string(s.line)
	s.line, s.at = nil, 0
	out := "\x1b[?2004l\r\n"
	switch command {
	case "cat":
		s.run = &cat{}
		return out
	case "sudo":
		s.run = &password{}
		return out + "Password: "
	case "vim":
		s.run = &vim{}
		return out + "\x1b[?1049h\x1b[H"
	case "less":
		s.run = &less{}
		return out + "\x1b[?1049h\x1b[H" + strings.Repeat("text\r\n", 7) + ":"
	}
	return out + "ok: " + command + "\r\n" + s.hello()
}

// cat is a program in canonical mode, with the kernel's echo.
type cat struct{ line string }

func (*cat) terminal() (wire.TerminalFlags, uint16) { return wire.Canonical | wire.Echo | usual, 2 }

func (c *cat) input(b byte) string {
	switch b {
	case '\r':
		out := "\r\n" + c.line + "\r\n"
		c.line = ""
		return out
	case 0x7f:
		if c.line == "" {
			return ""
		}
		c.line = c.line[:len(c.line)-1]
		return "\b \b"
	case 0x15:
		out := strings.Repeat("\b \b", len(c.line))
		c.line = ""
		return out
	case 4:
		return ""
	}
	c.line += string(rune(b))
	return string(rune(b))
}

// dash is a shell whose lines the kernel edits.
type dash struct{ cat }

func (*dash) terminal() (wire.TerminalFlags, uint16) {
	return wire.Canonical | wire.Echo | wire.Shell | usual, 1
}

func (d *dash) input(b byte) string {
	out := d.cat.input(b)
	if b == '\r' {
		out += "$ "
	}
	return out
}

// A password is read without echo.
type password struct{}

func (*password) terminal() (wire.TerminalFlags, uint16) { return wire.Canonical | usual, 3 }

func (*password) input(b byte) string {
	if b == '\r' {
		return "\r\n"
	}
	return ""
}

// mainScreen is what a program that fills the screen says when it ends.
const mainScreen = "\x1b[?1049l"

// vim has an insert mode, and a normal one in which keys move or delete. It ends with Z.
type vim struct {
	inserts bool
	n       int
}

func (*vim) terminal() (wire.TerminalFlags, uint16) { return usual, 4 }

func (v *vim) input(b byte) string {
	switch {
	case b == 0x1b:
		v.inserts = false
		return "\x1b7\x1b[8;1H\x1b[K\x1b8"
	case v.inserts && b == 0x7f:
		if v.n == 0 {
			return ""
		}
		v.n--
		return "\b \b"
	case v.inserts && b == '\r':
		v.n = 0
		return "\r\n"
	case v.inserts:
		v.n++
		return "\x1b[?25l" + string(rune(b)) + fmt.Sprintf("\x1b7\x1b[8;30H%d \x1b8\x1b[?25h", v.n)
	case b == 'Z':
		return mainScreen
	case b == 'i':
		v.inserts = true
		return "\x1b7\x1b[8;1H-- INSERT --\x1b8"
	case b == 'x':
		return "\x1b[P"
	case b == 'j':
		return "\x1b[B"
	}
	return ""
}

// less has a line at the bottom, in which it reads a text to search for behind a slash.
type less struct{ searches bool }

func (*less) terminal() (wire.TerminalFlags, uint16) { return usual, 7 }

func (l *less) input(b byte) string {
	switch {
	case l.searches && b == '\r':
		l.searches = false
		return "\r\x1b[K:"
	case l.searches:
		return string(rune(b))
	case b == '/':
		l.searches = true
		return "\r\x1b[K/"
	case b == 'j':
		return "\r\x1b[Ktext\r\n:"
	}
	return ""
}

// A remote shell is one inside ssh: its terminal is another one, of which the hints know nothing.
type remote struct{ shell }

func (*remote) terminal() (wire.TerminalFlags, uint16) { return usual, 5 }

// A form answers each key with its glyph, then with a count in the first row, and then puts the cursor to
// the place of the next key. Its rows are shorter than those of the screen.
type form struct{ n int }

const formWidth = 30

func (f *form) place() (x, y int) { return f.n % formWidth, 2 + f.n/formWidth }

func (f *form) hello() string {
	x, y := f.place()
	return fmt.Sprintf("\x1b[1;1H<%d>\x1b[%d;%dH", f.n, y+1, x+1)
}

func (*form) terminal() (wire.TerminalFlags, uint16) { return wire.Shell | usual, 6 }

func (f *form) input(b byte) string {
	f.n++
	return string(rune(b)) + f.hello()
}
