//go:build linux || darwin

package holder

import "testing"

// Only a line with yes starts a command. What a terminal answers to a program that is gone counts for nothing.
func TestAnswerLine(t *testing.T) {
	for _, test := range []struct {
		typed         string
		answered, yes bool
		echo          string
	}{
		{"y\r", true, true, "y\r\n"},
		{"Yes\n", true, true, "Yes\r\n"},
		{"y", false, false, "y"},
		{"\r", true, false, "\r\n"},
		{"n\r", true, false, "n\r\n"},
		{"yellow\r", true, false, "yellow\r\n"},
		{"n\x7fy\r", true, true, "n\b \by\r\n"},
		{"y\x03", true, false, "y\r\n"},
		{"\x1b[?2026;2$y\x1b[?1;2c\x1b[5;7R", false, false, ""},
		{"\x1b[?2026;2$y\r", true, false, "\r\n"},
		{"\x1b]11;rgb:0/0/0\x1b\\\x1bP1$r0y\x1b\\\x1bOy\x1by\r", true, false, "\r\n"},
	} {
		var l answerLine
		echo, answered, yes := "", false, false
		for _, b := range []byte(test.typed) { // it may come in any pieces
			e, _, a, y := l.write([]byte{b})
			echo, answered, yes = echo+e, answered || a, yes || y
		}
		if answered != test.answered || yes != test.yes || echo != test.echo {
			t.Errorf("%q: answered %t, yes %t, echo %q", test.typed, answered, yes, echo)
		}
	}
	if _, rest, _, yes := new(answerLine).write([]byte("y\rls\r")); !yes || string(rest) != "ls\r" {
		t.Errorf("yes %t, %q is typed ahead", yes, rest)
	}
}
