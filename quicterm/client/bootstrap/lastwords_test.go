package bootstrap

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// All but the reason is shown, whatever the sizes of the writes, and nothing controls a terminal.
func TestLastWords(t *testing.T) {
	var shown []string
	l := &LastWords{Show: func(line string) { shown = append(shown, line) }}
	if l.Err("host") != nil {
		t.Error("there is a reason before anything is said")
	}
	said := "Warning: added\r\n\x1b[2Jbanner\n" + strings.Repeat("x", maxShown+1) + "\n" +
		"ssh: connect to host \x07 port 22: Connection refused\nunfinished"
	for r := range strings.SplitSeq(said, "") {
		io.WriteString(l, r)
	}
	want := []string{"Warning: added", "?[2Jbanner", strings.Repeat("x", maxShown), "x"}
	if !slices.Equal(shown, want) {
		t.Errorf("shown: %q, want %q", shown, want)
	}
	if err := l.Err("host"); err == nil || err.Error() != "ssh to host: connect to host ? port 22: Connection refused" {
		t.Errorf("%v", err)
	}
}
