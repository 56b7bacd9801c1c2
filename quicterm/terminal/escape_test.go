package terminal

import (
	"slices"
	"strings"
	"testing"
)

func TestEscapes(t *testing.T) {
	tests := []struct {
		char    string
		typed   []string // in pieces
		sent    string
		escapes string
	}{
		{"~", nil, "", ""},
		{"~", []string{"ls\r"}, "ls\r", ""},
		{"~", []string{"~#"}, "", "#"},
		{"~", []string{"~", "#"}, "", "#"},
		{"~", []string{"~david/\r~."}, "~david/\r", "."},
		{"~", []string{"~", "d", "a", "v", "i", "d", "/", "\r", "~", "."}, "~david/\r", "."},
		{"~", []string{"\r~/bin", "\r", "~", "\r", "~", "~", "/x"}, "\r~/bin\r~\r~/x", ""},
		{"~", []string{"ls\r~."}, "ls\r", "."},
		{"~", []string{"ls\n~."}, "ls\n", "."},
		{"~", []string{"ls ~."}, "ls ~.", ""},
		{"~", []string{"~~x"}, "~x", ""},
		{"~", []string{"~~~."}, "~~.", ""},
		{"~", []string{"~x\r~."}, "~x\r", "."},
		{"~", []string{"~\r~."}, "~\r", "."},
		{"~", []string{"~#~?~."}, "", "#?."},
		{"~", []string{"~?ls"}, "ls", "?"},
		{"~", []string{"ä~.\r~#"}, "ä~.\r", "#"},
		{"%", []string{"~.\r%."}, "~.\r", "."},
		{"none", []string{"~.\r~."}, "~.\r~.", ""},
	}
	for _, test := range tests {
		f := newEscapeFilter(test.char)
		var sent strings.Builder
		escapes := ""
		for _, piece := range test.typed {
			f.filter([]byte(piece), func(b []byte) { sent.Write(b) }, func(c byte) bool {
				if !strings.ContainsRune(".#?", rune(c)) {
					return false
				}
				escapes += string(c)
				return true
			})
		}
		if sent.String() != test.sent || escapes != test.escapes {
			t.Errorf("%q typed: sent %q, escapes %q; want %q, %q", test.typed, sent.String(), escapes, test.sent, test.escapes)
		}
	}
}

// A tilde that is no escape is sent with what follows it, so that both are drawn at once; at the end of a
// file it is sent alone.
func TestHeldTilde(t *testing.T) {
	f := newEscapeFilter("~")
	var sent []string
	send := func(b []byte) { sent = append(sent, string(b)) }
	for _, piece := range []string{"~", "d", "\r", "~"} {
		f.filter([]byte(piece), send, func(byte) bool { return false })
	}
	if want := []string{"~d", "\r"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
	f.end(send)
	if want := []string{"~d", "\r", "~"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q at the end, want %q", sent, want)
	}
}
