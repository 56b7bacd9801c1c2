package drive

import (
	"strings"

	"github.com/quicterm/quicterm/quicterm/screen/marks"
	"github.com/quicterm/quicterm/quicterm/screen/vt"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A listener is a Terminal as the parser of its output sees it: it hears bells, notifications and marks, and gives the
// command that Run waits for its text.
type listener Terminal

// maxNotification bounds the text of a notification, in bytes.
const maxNotification = 1 << 10

func (l *listener) Print(text []byte) { l.command.print(text...) }

func (l *listener) Rune(r rune) { l.command.print([]byte(string(r))...) }

func (l *listener) Broken([]byte) {}

func (l *listener) Execute(c byte) {
	switch c {
	case '\a':
		l.heard(Bell, "")
	case '\n', '\r', '\t':
		l.command.print(c)
	}
}

func (l *listener) Escape(uint16, byte) {}

func (l *listener) Control(*vt.Control) {}

// String hears OSC 133 and 633, the marks of a shell; OSC 9 of iTerm2, which is a progress bar with "4;"; OSC 777 of
// urxvt; and OSC 99 of kitty.
func (l *listener) String(kind byte, data []byte, part vt.Part) {
	if kind != ']' || part != vt.Whole {
		return
	}
	number, text, _ := strings.Cut(string(data), ";")
	switch number {
	case "133", "633", ownMark:
		l.command.mark(number, text)
	case "9":
		if !strings.HasPrefix(text, "4;") {
			l.heard(Notify, text)
		}
	case "777":
		if text, ok := strings.CutPrefix(text, "notify;"); ok {
			l.heard(Notify, strings.ReplaceAll(text, ";", ": "))
		}
	case "99":
		if _, text, ok := strings.Cut(text, ";"); ok {
			l.heard(Notify, text)
		}
	}
}

// heard tells the watches of a kind.
func (l *listener) heard(kind Kind, text string) {
	t := (*Terminal)(l)
	for _, w := range t.watches {
		if w.Kind == kind {
			t.foundLocked(w, wire.Printable(text, maxNotification), -1)
		}
	}
}

// A command is a command line that a shell runs. Nil is none.
type command struct {
	nonce   string // of the marks that belong to it; empty if the shell sends its own
	out     func(text []byte)
	printed bool   // its output has begun
	lost    bool   // output is missing
	text    []byte // of its output, not given to out
	end     int    // what of text is before the last mark of an end, or -1
	status  int    // in that mark
}

// maxHeld bounds what is held of the text behind a mark that may be the end, or not: a prompt is shorter.
const maxHeld = 64 << 10

func (c *command) print(text ...byte) {
	if c == nil || !c.printed {
		return
	}
	for _, b := range text {
		if n := len(c.text); b == '\n' && n > 0 && c.text[n-1] == '\r' {
			c.text = c.text[:n-1]
		}
		c.text = append(c.text, b)
	}
	if c.end < 0 && len(c.text) > 1 || len(c.text) > maxHeld {
		c.flush(len(c.text) - 1) // a line feed may follow
		c.end = -1
	}
}

func (c *command) flush(n int) {
	if n > 0 {
		c.out(c.text[:n])
		c.text = append(c.text[:0], c.text[n:]...)
	}
}

// finish gives what is left of the output.
func (c *command) finish() {
	if c.end >= 0 {
		c.text = c.text[:c.end]
	}
	c.flush(len(c.text))
}

// ownMark is the number of the OSC of the marks that Run types itself, which no terminal knows.
const ownMark = "8133"

// mark handles a mark: C begins the output, D with a status ends it. Those that the command prints are ignored as far
// as that can be known: by their nonce, or because a later one ends it.
func (c *command) mark(number, mark string) {
	if c == nil || (number == ownMark) != (c.nonce != "") || !strings.HasSuffix(mark, c.nonce) {
		return
	}
	switch m := marks.Parse(mark); m.Kind {
	case marks.Output:
		if !c.printed {
			c.printed, c.end = true, -1
		}
	case marks.End:
		if c.printed {
			c.flush(max(c.end, 0))
			c.end, c.status = len(c.text), max(m.Status, 0)
		}
	}
}
