package vt

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// TextPart returns the length of what b begins with, if that is text: characters, the control characters
// within text, SGR, or EL without a parameter, which programs send with colours.
func TextPart(b []byte) int {
	switch c := b[0]; {
	case c == '\n' || c == '\r' || c == '\t':
		return 1
	case c == esc:
		if len(b) < 3 || b[1] != '[' {
			return 0
		}
		if b[2] == 'K' {
			return 3
		}
		for i, c := range b[2:] {
			switch {
			case c == 'm':
				return i + 3
			case c < '0' || c > ';':
				return 0
			}
		}
		return 0
	case c >= utf8.RuneSelf:
		if r, n := utf8.DecodeRune(b); n > 1 && r >= 0xa0 && r != '\ufeff' {
			return n
		}
		return 0
	}
	return Printable(b)
}

// Printable returns how many bytes at the start of b are printable ASCII characters.
func Printable(b []byte) (n int) {
	const each = 0x0101010101010101
	for ; len(b)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		// The highest bit of a byte that is not printable is set. So it may be in the bytes after that.
		if bad := (w | (w + each) | ^(w + 0x60*each)) & (0x80 * each); bad != 0 {
			return n + bits.TrailingZeros64(bad)/8
		}
	}
	for n < len(b) && b[n]-' ' < 0x7f-' ' {
		n++
	}
	return n
}
