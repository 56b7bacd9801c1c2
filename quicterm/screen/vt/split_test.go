package vt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A piece is the argument of one call by a splitter.
type piece struct {
	sequence bool
	bytes    string
}

func (p piece) String() string {
	kind := "plain"
	if p.sequence {
		kind = "sequence"
	}
	return fmt.Sprintf("%s %.40q", kind, p.bytes)
}

func plain(s string) piece    { return piece{false, s} }
func sequence(s string) piece { return piece{true, s} }

// collect splits chunks and returns the pieces, merged.
func collect(s *splitter, chunks ...string) []piece {
	var pieces []piece
	for _, chunk := range chunks {
		s.feed([]byte(chunk),
			func(b []byte) { pieces = append(pieces, plain(string(b))) },
			func(b []byte) { pieces = append(pieces, sequence(string(b))) })
	}
	return merge(pieces)
}

// merge joins consecutive plain pieces: where those are cut depends on the chunks.
func merge(pieces []piece) []piece {
	var merged []piece
	for _, p := range pieces {
		if n := len(merged); n > 0 && !p.sequence && !merged[n-1].sequence {
			merged[n-1].bytes += p.bytes
			continue
		}
		merged = append(merged, p)
	}
	return merged
}

// bytewise cuts a string at each byte, inside characters too.
func bytewise(s string) []string {
	chunks := make([]string, len(s))
	for i := range len(s) {
		chunks[i] = s[i : i+1]
	}
	return chunks
}

// splits are inputs, their pieces, and the bytes of each that are held back.
var splits = []struct {
	why, input string
	pieces     []piece
	rest       string
}{
	{"nothing", "", nil, ""},
	{"text", "ls -l\r\n", []piece{plain("ls -l\r\n")}, ""},
	{"UTF-8 text", "né €😀", []piece{plain("né €😀")}, ""},
	{"UTF-8 whose bytes are C1 controls elsewhere", "\u009b6n\x9b6n", []piece{plain("\u009b6n\x9b6n")}, ""},

	{"CSI", "\x1b[m", []piece{sequence("\x1b[m")}, ""},
	{"CSI among text", "a\x1b[1;31mb", []piece{plain("a"), sequence("\x1b[1;31m"), plain("b")}, ""},
	{"CSI with private parameters", "\x1b[?25l", []piece{sequence("\x1b[?25l")}, ""},
	{"CSI with an intermediate byte", "\x1b[2 q", []piece{sequence("\x1b[2 q")}, ""},
	{"CSI with controls inside, which terminals obey", "\x1b[1\r\n;\x7f2H", []piece{sequence("\x1b[1\r\n;\x7f2H")}, ""},

	{"OSC ended by BEL", "\x1b]0;t\ax", []piece{sequence("\x1b]0;t\a"), plain("x")}, ""},
	{"OSC ended by ST", "\x1b]0;t\x1b\\x", []piece{sequence("\x1b]0;t\x1b\\"), plain("x")}, ""},
	{"OSC of UTF-8", "\x1b]0;é\a", []piece{sequence("\x1b]0;é\a")}, ""},
	{"OSC of nothing", "\x1b]\a", []piece{sequence("\x1b]\a")}, ""},
	{"DCS", "\x1bP$qm\x1b\\", []piece{sequence("\x1bP$qm\x1b\\")}, ""},
	{"APC", "\x1b_Ga=q\x1b\\", []piece{sequence("\x1b_Ga=q\x1b\\")}, ""},
	{"PM", "\x1b^x\x1b\\", []piece{sequence("\x1b^x\x1b\\")}, ""},
	{"SOS", "\x1bXx\x1b\\", []piece{sequence("\x1bXx\x1b\\")}, ""},
	{"BEL inside of a DCS", "\x1bPa\ab\x1b\\", []piece{sequence("\x1bPa\ab\x1b\\")}, ""},
	{"an ST alone", "\x1b\\x", []piece{sequence("\x1b\\"), plain("x")}, ""},

	{"two characters", "\x1bM\x1b=\x1b7\x1bc", []piece{
		sequence("\x1bM"), sequence("\x1b="), sequence("\x1b7"), sequence("\x1bc")}, ""},
	{"ESC with an intermediate byte", "\x1b(0x", []piece{sequence("\x1b(0"), plain("x")}, ""},
	{"ESC with two", "\x1b$)Cx", []piece{sequence("\x1b$)C"), plain("x")}, ""},
	{"ESC with one, and what alone would begin a string", "\x1b(Px\x1b#]x\x1b [x", []piece{
		sequence("\x1b(P"), plain("x"), sequence("\x1b#]"), plain("x"), sequence("\x1b ["), plain("x")}, ""},
	{"controls after ESC", "\x1b\n[m", []piece{sequence("\x1b\n[m")}, ""},

	{"ESC cut off by CAN", "\x1b\x18[m", []piece{sequence("\x1b\x18"), plain("[m")}, ""},
	{"ESC with an intermediate byte cut off by SUB", "\x1b(\x1aB", []piece{sequence("\x1b(\x1a"), plain("B")}, ""},
	{"CSI cut off by CAN", "\x1b[3\x181m", []piece{sequence("\x1b[3\x18"), plain("1m")}, ""},
	{"CSI cut off by SUB", "\x1b[3\x1a1m", []piece{sequence("\x1b[3\x1a"), plain("1m")}, ""},
	{"CSI cut off by another", "\x1b[3\x1b[1m", []piece{sequence("\x1b[3"), sequence("\x1b[1m")}, ""},
	{"CSI cut off by UTF-8", "\x1b[3é", []piece{sequence("\x1b[3"), plain("é")}, ""},
	{"ESC cut off by another", "\x1b\x1b\x1b[m", []piece{sequence("\x1b"), sequence("\x1b"), sequence("\x1b[m")}, ""},
	{"ESC cut off by UTF-8", "\x1bé\x1b(é", []piece{sequence("\x1b"), plain("é"), sequence("\x1b("), plain("é")}, ""},
	{"ESC and an intermediate byte cut off by another", "\x1b(\x1b[m", []piece{sequence("\x1b("), sequence("\x1b[m")}, ""},
	{"OSC cut off by CAN", "\x1b]0;t\x18x", []piece{sequence("\x1b]0;t\x18"), plain("x")}, ""},
	{"DCS cut off by SUB", "\x1bPq\x1ax", []piece{sequence("\x1bPq\x1a"), plain("x")}, ""},
	{"OSC cut off by CSI", "\x1b]0;t\x1b[mx", []piece{sequence("\x1b]0;t"), sequence("\x1b[m"), plain("x")}, ""},
	{"OSC cut off by ESC ESC", "\x1b]0;t\x1b\x1b\\", []piece{sequence("\x1b]0;t"), sequence("\x1b"), sequence("\x1b\\")}, ""},
	{"OSC cut off by ESC CAN", "\x1b]0;t\x1b\x18x", []piece{sequence("\x1b]0;t"), sequence("\x1b\x18"), plain("x")}, ""},
	{"OSC cut off by ESC and UTF-8", "\x1b]0;t\x1bé", []piece{sequence("\x1b]0;t"), sequence("\x1b"), plain("é")}, ""},

	{"ESC at the end", "a\x1b", []piece{plain("a")}, "\x1b"},
	{"CSI without an end", "a\x1b[1;", []piece{plain("a")}, "\x1b[1;"},
	{"OSC without an end", "\x1b]0;t", nil, "\x1b]0;t"},
	{"OSC with half an end", "\x1b]0;t\x1b", nil, "\x1b]0;t\x1b"},

	{"OSC of just the limit", osc(maxSequence, "\a") + "x", []piece{sequence(osc(maxSequence, "\a")), plain("x")}, ""},
	{"OSC past the limit", osc(maxSequence+1, "\a"), []piece{plain(osc(maxSequence+1, "\a"))}, ""},
	{"OSC past it by half of ST", osc(maxSequence+1, "\x1b\\"), []piece{plain(osc(maxSequence+1, "\x1b\\"))}, ""},
	{"OSC past it by ST", osc(maxSequence+2, "\x1b\\"), []piece{plain(osc(maxSequence+2, "\x1b\\"))}, ""},
	{"OSC past it many times", osc(9*maxSequence, "\a"), []piece{plain(osc(9*maxSequence, "\a"))}, ""},
	{"CSI past the limit", "\x1b[" + strings.Repeat("1", maxSequence) + "m\x1b[m", []piece{
		plain("\x1b[" + strings.Repeat("1", maxSequence) + "m"), sequence("\x1b[m")}, ""},
	{"OSC past it, cut off by CSI", osc(maxSequence+9, "") + "\x1b[m", []piece{
		plain(osc(maxSequence+9, "")), sequence("\x1b[m")}, ""},
	{"OSC cut off by CSI at the limit", osc(maxSequence, "") + "\x1b[m", []piece{
		plain(osc(maxSequence, "")), sequence("\x1b[m")}, ""},
	{"OSC past it, without an end", osc(maxSequence+9, ""), []piece{plain(osc(maxSequence+1, ""))}, "tttttttt"},
}

// osc returns an OSC of n bytes with the given end.
func osc(n int, end string) string {
	const begin = "\x1b]0;"
	return begin + strings.Repeat("t", n-len(begin)-len(end)) + end
}

func TestSplit(t *testing.T) {
	for _, test := range splits {
		for _, chunks := range [][]string{{test.input}, bytewise(test.input)} {
			var s splitter
			if got := collect(&s, chunks...); !slices.Equal(got, test.pieces) {
				t.Errorf("%s, in %d chunks:\n%v, want\n%v", test.why, len(chunks), got, test.pieces)
			}
			if s.ground() != (test.rest == "") {
				t.Errorf("%s, in %d chunks: ground() = %v", test.why, len(chunks), s.ground())
			}
			if got := string(s.rest()); got != test.rest {
				t.Errorf("%s, in %d chunks: rest() = %q, want %q", test.why, len(chunks), got, test.rest)
			}
		}
	}
}

// Rest resets the splitter in every state.
func TestRestForgets(t *testing.T) {
	const input = "\x1b]52;c;\x1bP\x1b(\x1b[1\x1b"
	want := []piece{plain("m\a"), sequence("\x1b[m"), plain("x")}
	for n := range len(input) + 1 {
		var s splitter
		collect(&s, input[:n])
		s.rest()
		if !s.ground() || len(s.rest()) > 0 {
			t.Errorf("after %q: not in ground", input[:n])
		}
		if got := collect(&s, "m\a\x1b[mx"); !slices.Equal(got, want) {
			t.Errorf("after %q: %v", input[:n], got)
		}
	}
}
