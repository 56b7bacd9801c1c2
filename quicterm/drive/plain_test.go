package drive

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// The text that a terminal has shown has each line once, as it was at last, however the output is cut.
func TestPlain(t *testing.T) {
	var many, want strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "\x1b[1mline\x1b[m %d\r\n", i)
		fmt.Fprintf(&want, "line %d\n", i)
	}
	long := strings.Repeat("0123456789", 30)
	for name, test := range map[string]struct{ output, want string }{
		"nothing":             {"", ""},
		"many":                {many.String(), want.String()},
		"a prompt":            {"one\r\ntwo\r\n$ ", "one\ntwo\n$\n"},
		"drawn over":          {"10%\r20%\r\ndone\r\n", "20%\ndone\n"},
		"longer than the row": {long + "\r\nnext\r\n", long + "\nnext\n"},
		"an editor":           {"before\r\n\x1b[?1049h\x1b[2Jtext\x1b[?1049lafter\r\n", "before\nafter\n"},
		"characters":          {"äöü 你好\r\n", "äöü 你好\n"},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			var p plain
			p.resize(wire.Sizing{Size: wire.Size{Cols: 40, Rows: 5}})
			got := ""
			for rest := test.output; rest != ""; {
				n := min(piece, len(rest))
				got += p.draw(rest[:n])
				rest = rest[n:]
			}
			if got += p.rest(); got != test.want {
				t.Errorf("%s, %d bytes at a time: %q, want %q", name, piece, got, test.want)
			}
		}
	}
}
