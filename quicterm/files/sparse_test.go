package files

import (
	"bytes"
	"strings"
	"testing"
)

// The pieces of a content begin at whole blocks, have no blocks of zeros, and are all that is not zeros.
func TestData(t *testing.T) {
	for _, blocks := range []string{
		"", ".", "x", "x.", ".x", "xx", "x.x", ".x.", "..xx..x", "x..x.x..", "xxxxxxxx", "........",
	} {
		for _, last := range []int{0, 1, blockBytes - 1} {
			var content []byte
			for _, kind := range blocks {
				block := make([]byte, blockBytes)
				if kind == 'x' {
					block[blockBytes-1] = 1
				}
				content = append(content, block...)
			}
			content = append(content, bytes.Repeat([]byte{1}, last)...)
			want := len(strings.FieldsFunc(blocks+"x"[:min(last, 1)], func(kind rune) bool { return kind == '.' }))
			got, pieces := make([]byte, len(content)), 0
			for at, piece := range Data(content) {
				pieces++
				if at%blockBytes != 0 || len(piece) == 0 {
					t.Errorf("%q and %d bytes: %d bytes at %d", blocks, last, len(piece), at)
				}
				copy(got[at:], piece)
			}
			if !bytes.Equal(got, content) || pieces != want {
				t.Errorf("%q and %d bytes: %d pieces, want %d, equal is %t", blocks, last, pieces, want, bytes.Equal(got, content))
			}
			for range Data(content) {
				break // Data stops, too
			}
		}
	}
}
