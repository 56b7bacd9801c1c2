package drive

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/screen/vt"
)

// heard returns the output of a command and its status, as heard from a terminal.
func heard(nonce string, chunks ...string) (output string, status int) {
	c := &command{nonce: nonce, begun: true, marked: nonce != "", end: -1, out: func(text []byte) { output += string(text) }}
	t := &Terminal{command: c}
	for _, chunk := range chunks {
		t.parser.Parse([]byte(chunk), (*listener)(t))
	}
	c.finish()
	return output, c.status
}

// The output of a command is what is between its marks, as text, however the output is cut.
func TestCommandOutput(t *testing.T) {
	const shell = "\x1b]133;C\x07"
	for _, test := range []struct {
		name, nonce, output, want string
		status                    int
	}{
		{"marks of the shell", "", "echo\r\n" + shell + "one\r\ntwo\r\n\x1b]133;D;3\x07\x1b]133;A\x07$ ", "one\ntwo\n", 3},
		{"with ST", "", "\x1b]133;C\x1b\\x\x1b]133;D;0\x1b\\", "x", 0},
		{"a mark of an end within the output", "", shell + "a\x1b]133;D;9\x07b\x1b]133;D;1\x07$ ", "ab", 1},
		{"control sequences", "", shell + "\x1b[1mbold\x1b[m\x1b[K\r\n\x1b]133;D;0\x07", "bold\n", 0},
		{"a carriage return alone stays", "", shell + "10%\r20%\r\n\x1b]133;D\x07", "10%\r20%\n", 0},
		{"fish begins a line", "", shell + "\x1b[m\rone\r\n\x1b]133;D;0\x07", "one\n", 0},
		{"zsh ends a line", "", shell + "one\r\n\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m" + strings.Repeat(" ", 79) +
			"\r \r\x1b]133;D;2\x07\r\x1b[0m% ", "one\n", 2},
		{"zsh ends a line without an end", "", shell + "one%" + strings.Repeat(" ", 79) + "\r \r\x1b]133;D;0\x07", "one", 0},
		{"what only looks like that", "", shell + "100% \r\n 5%\x1b]133;D;0\x07", "100% \n 5%", 0},
		{"characters", "", shell + "äöü\r\n\x1b]133;D;0\x07", "äöü\n", 0},
		{"another command's nonce", "abc", "\x1b]8133;C;abc\x07a\x1b]8133;D;0;xyz\x07b\x1b]8133;D;2;abc\x07$ ", "ab", 2},
		{"marks of a shell within", "abc", "\x1b]8133;C;abc\x07" + shell + "a\x1b]133;D;7\x07\x1b]8133;D;2;abc\x07", "a", 2},
	} {
		var bytes []string
		for i := range len(test.output) {
			bytes = append(bytes, test.output[i:i+1])
		}
		for how, chunks := range map[string][]string{"at once": {test.output}, "byte by byte": bytes} {
			if got, status := heard(test.nonce, chunks...); got != test.want || status != test.status {
				t.Errorf("%s, %s: %q and status %d, want %q and %d", test.name, how, got, status, test.want, test.status)
			}
		}
	}
}

// Text behind a mark that turns out to be none of an end is held, but not without bound.
func TestHeldOutput(t *testing.T) {
	var got int
	c := &command{begun: true, end: -1, out: func(text []byte) { got += len(text) }}
	c.mark("133", "C")
	c.mark("133", "D;0")
	for range 100 {
		c.print([]byte(strings.Repeat("x", 1<<10))...)
	}
	if got < 100<<10-1 {
		t.Errorf("%d bytes were given, of %d", got, 100<<10)
	}
}

func TestKeys(t *testing.T) {
	for _, test := range []struct{ keys, want string }{
		{"C-c", "\x03"}, {"C-[", "\x1b"}, {"C-Space", "\x00"}, {"M-x", "\x1bx"}, {"M-C-a", "\x1b\x01"}, {"Enter", "\r"},
		{"Up Down", "\x1b[A\x1b[B"}, {"F5 a é", "\x1b[15~aé"},
	} {
		got, err := keyBytes(strings.Fields(test.keys))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %q, %v; want %q", test.keys, got, err, test.want)
		}
	}
	for _, bad := range []string{"", "C-", "C-ä", "Foo", "M-", "ab"} {
		if got, err := keyBytes([]string{bad}); err == nil {
			t.Errorf("%q gave %q", bad, got)
		} else if !strings.Contains(err.Error(), fmt.Sprintf("%q", bad)) {
			t.Errorf("%q: %v does not name it", bad, err)
		}
	}
}

var _ vt.Handler = (*listener)(nil)
