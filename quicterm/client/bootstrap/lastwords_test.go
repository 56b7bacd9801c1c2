package bootstrap

import (
	"slices"
	"testing"
)

// All but the reason is shown that is not shown already, and nothing controls a terminal.
func TestLastWords(t *testing.T) {
	var shown []string
	l := &LastWords{Show: func(line string) { shown = append(shown, line) }}
	if l.Err("host") != nil {
		t.Error("there is a reason before anything is said")
	}
	for _, line := range []string{"Warning: added", "\x1b[2Jbanner", "ssh: connect to host \x07 port 22: Connection refused"} {
		l.Hear(line, false)
	}
	l.Hear("password:", true)
	want := []string{"Warning: added", "?[2Jbanner"}
	if !slices.Equal(shown, want) {
		t.Errorf("shown: %q, want %q", shown, want)
	}
	if err := l.Err("host"); err == nil || err.Error() != "ssh to host: connect to host ? port 22: Connection refused" {
		t.Errorf("%v", err)
	}
}
