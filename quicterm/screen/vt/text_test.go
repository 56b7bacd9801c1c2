package vt

import (
	"strings"
	"testing"
)

// TestPrintable holds words of each byte, beside others, against the definition.
func TestPrintable(t *testing.T) {
	for c := range 256 {
		for _, other := range []byte{' ', '~', 0x1f, 0x7f, 0x80, 0xff} {
			for at := range 10 {
				b := []byte(strings.Repeat(" ", 10))
				b[at], b[9] = byte(c), other
				want := strings.IndexFunc(string(b), func(r rune) bool { return r < ' ' || r > '~' })
				if want < 0 {
					want = len(b)
				}
				if got := Printable(b); got != want {
					t.Fatalf("%q begins with %d printable characters, want %d", b, got, want)
				}
			}
		}
	}
}
