package main

import (
	"strings"
	"testing"
)

func TestEscapes(t *testing.T) {
	tests := []struct {
		char     string
		typed    []string // in pieces
		sent     string
		commands string
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
		e := newEscaper(test.char)
		var sent strings.Builder
		commands := ""
		for _, piece := range test.typed {
			e.filter([]byte(piece), func(b []byte) { sent.Write(b) }, func(c byte) bool {
				if !strings.ContainsRune(".ds?", rune(c)) {
					return false
				}
				commands += string(c)
				return true
			})
		}
		if sent.String() != test.sent || commands != test.commands {
			t.Errorf("%q typed: sent %q, commands %q; want %q, %q", test.typed, sent.String(), commands, test.sent, test.commands)
		}
	}
}
