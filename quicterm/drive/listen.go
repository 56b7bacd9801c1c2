package drive

import (
	"bytes"
	"regexp"
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

// String hears marks of a shell, and notifications.
func (l *listener) String(kind byte, data []byte, part vt.Part) {
	if kind != ']' || part != vt.Whole {
		return
	}
	number, text, _ := strings.Cut(string(data), ";")
	switch number {
	case "133", "633", ownMark:
		l.command.mark(number, text)
	default:
		if text, ok := marks.Notification(number, text); ok {
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
	nonce   string // of the marks that belong to it, if it is marked: else the shell sends its own
	out     func(text []byte)
	failed  error // of what out has written
	begun   bool  // it is typed
	marked  bool
	again   bool   // it was typed before, and its output is read once more
	over    bool   // then: its end is known
	printed bool   // its output has begun
	written bool   // out has got some
	lost    bool   // output is missing
	text    []byte // of its output, not given to out
	end     int    // what of text is before the last mark of an end, or -1
	status  int    // in that mark
}

// maxHeld bounds what is held of the text behind a mark that may be the end, or not: a prompt is shorter.
const maxHeld = 64 << 10

func (c *command) print(text ...byte) {
	if c == nil || !c.printed || c.over {
		return
	}
	for _, b := range text {
		if n := len(c.text); b == '\n' && n > 0 && c.text[n-1] == '\r' {
			c.text = c.text[:n-1]
		}
		c.text = append(c.text, b)
	}
	if len(c.text) > maxHeld {
		c.flush(len(c.text))
		c.end = -1
	} else if c.end < 0 {
		n := len(bytes.TrimRight(c.text, " \r")) // a line feed may follow, or zshEnd
		c.flush(max(n-1, len(c.text)-maxBlank, 0))
	}
}

func (c *command) flush(n int) {
	text := c.text[:n]
	if !c.written {
		text = bytes.TrimLeft(text, "\r") // of fish, which returns to the first column before it runs a command
	}
	if len(text) > 0 {
		c.written = true
		c.out(text)
	}
	c.text = append(c.text[:0], c.text[n:]...)
}

// finish gives what is left of the output.
func (c *command) finish() {
	if c.end >= 0 {
		c.text = regexp.MustCompile(zshEnd).ReplaceAll(c.text[:c.end], nil)
	}
	c.flush(len(c.text))
}

// zshEnd matches what zsh prints before it says that a command has ended: a sign that stays if the last line has no end,
// and as many blanks as the terminal is wide.
const zshEnd = `[%#]? {10,}\r \r$`

// maxBlank bounds what is held of blanks, in bytes: few terminals are wider.
const maxBlank = 1 << 10

// begin makes what is printed now count.
func (c *command) begin(e wire.Entered) {
	if c != nil {
		c.begun, c.marked = true, e.Marked
	}
}

// ownMark is the number of the OSC of the marks that the server types itself, which no terminal knows.
const ownMark = "8133"

// mark handles a mark: C begins the output, D with a status ends it. Those that the command prints are ignored as far
// as that can be known: by their nonce, or because a later one ends it.
func (c *command) mark(number, mark string) {
	if c == nil || !c.begun || c.over || (number == ownMark) != c.marked || c.marked && !strings.HasSuffix(mark, c.nonce) {
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
			c.over = c.again && c.marked
		}
	case marks.Prompt:
		c.over = c.again && c.end >= 0 // other commands may follow
	}
}
