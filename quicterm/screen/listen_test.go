package screen

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/screen/marks"
)

// A heard is all that a Listener was told.
type heard []string

func (h *heard) Bell()                    { *h = append(*h, "bell") }
func (h *heard) Notification(text string) { *h = append(*h, text) }
func (h *heard) Query(answer string)      { *h = append(*h, strings.TrimPrefix(answer, "\x1b")) }
func (h *heard) Mark(m marks.Mark)        { *h = append(*h, fmt.Sprintf("%c %d", m.Kind, m.Status)) }

// What a program tells is heard once, in order, however its output is cut, and in a flood of text that is not drawn.
func TestListen(t *testing.T) {
	flood := strings.Repeat("a line of a flood\r\n", 5000)
	output := "\x1b]133;C\x07" + flood + "\a\x1b]9;built\x07" + flood + "\x1b]133;D;2\x1b\\\x1b]0;title\x07" +
		"\x1b[?1049h\x1b]133;A\x07\x1b[?1049l" + flood + "\x1b]777;notify;a;b\x07\x1b]9;4;1;50\x07"
	output += "\x1b[c\x1b[5n\x1b[3;80Hx\x1b[6n\x1b[5;9r\x1b[?6h\x1b[2;4H\x1b[6n\x1b[>c\x1b[?6n\x1b[1c"
	want := []string{"C -1", "bell", "built", "D 2", "a: b", "[?62;22c", "[0n", "[3;80R", "[2;4R"}
	for _, size := range []int{1, 7, 4096, len(output)} {
		var h heard
		s := New(80, 24, Limits{})
		s.Listen(&h)
		for b := range slices.Chunk([]byte(output), size) {
			s.Write(b)
		}
		if !slices.Equal(h, want) {
			t.Errorf("in pieces of %d bytes: %q, want %q", size, h, want)
		}
	}
}
