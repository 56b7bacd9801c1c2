package terminal

import (
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
		{"~", []string{"ls\r"}, "ls\r", ""},
		{"~", []string{"~d"}, "", "d"},
		{"~", []string{"~", "d"}, "", "d"},
		{"~", []string{"ls\r~."}, "ls\r", "."},
		{"~", []string{"ls\n~."}, "ls\n", "."},
		{"~", []string{"ls ~."}, "ls ~.", ""},
		{"~", []string{"~~x"}, "~x", ""},
		{"~", []string{"~~~."}, "~~.", ""},
		{"~", []string{"~x\r~."}, "~x\r", "."},
		{"~", []string{"~\r~."}, "~\r", "."},
		{"~", []string{"~s~?~."}, "", "s?."},
		{"~", []string{"~?ls"}, "ls", "?"},
		{"~", []string{"ä~.\r~d"}, "ä~.\r", "d"},
		{"%", []string{"~.\r%."}, "~.\r", "."},
		{"none", []string{"~.\r~."}, "~.\r~.", ""},
	}
	for _, test := range tests {
		f := newEscapeFilter(test.char)
		var sent strings.Builder
		escapes := ""
		for _, piece := range test.typed {
			f.filter([]byte(piece), func(b []byte) { sent.Write(b) }, func(c byte) bool {
				if !strings.ContainsRune(".ds?", rune(c)) {
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
