package screen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// state returns all that later output and a reader of the Screen depend on.
func state(s *Screen) string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %d,%d pen %v repeat %v lines %d scrolled %d newest %d saved %v\n", s.x, s.y, s.pen, s.repeat,
		s.Lines(), s.Scrolled(), s.lastLine, s.main.saved)
	for y := -s.Lines(); y < s.rows; y++ {
		r := s.Row(y)
		fmt.Fprintf(&b, "%d %v ", r.Line(), r.Wrapped())
	}
	return b.String() + fmt.Sprintf("\n%q", s.Snapshot(Snapshot{Lines: s.limits.Lines}))
}

// TestSkippedTextLeavesSameState writes random output with floods of text at once, and in parts of which
// none is large enough for text to be skipped.
func TestSkippedTextLeavesSameState(t *testing.T) {
	cases := 150
	if testing.Short() {
		cases = 30
	}
	seed := chosenSeed()
	for i := range cases {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		cols, rows, limits := 2+r.IntN(90), 1+r.IntN(30), Limits{Lines: 1 + r.IntN(200)}
		got, want := New(cols, rows, limits), New(cols, rows, limits)
		for part := range 8 {
			var output []byte
			for range 1 + r.IntN(4) {
				switch r.IntN(4) {
				case 0:
					output = randomOutput(r, output)
				case 1: // so that more of the output is text that flows
					output = append(output, "\x18\x1b[!p\x1b[?1049l\x1b[?7h\x1b[?69l\x1b(B\x0f\x1b[999H"...)
				default:
					output = randomText(r, output, rows+limits.Lines)
				}
			}
			got.Write(output)
			for rest := output; len(rest) > 0; {
				n := min(1+r.IntN(minSkip-1), len(rest))
				want.Write(rest[:n])
				rest = rest[n:]
			}
			if got, want := state(got), state(want); got != want {
				t.Fatalf("seed %d, case %d, part %d: after %q\n%s\nwant\n%s", seed, i, part, output, got, want)
			}
			checkInvariants(t, got)
		}
	}
}

// randomText appends lines of text and colours.
func randomText(r *rand.Rand, b []byte, lines int) []byte {
	parts := []string{
		"text", "a longer piece of text, of which each takes the place of the one before, ", "\t", "größe ", "終了", "e\u0301",
		"\x1b[31m", "\x1b[0;1;44m", "\x1b[38;2;1;2;3m", "\x1b[4:3m", "\x1b[m", "\x1b[K", "\r", "😀", strings.Repeat("x", 200),
	}
	rare := []string{"\x1b[2K", "\b", "\a", "\xff", "\u0085", "\x1b[A", "\x1b[2;5r", "\x1b[H", "\x1b]2;t\a", "\x7f", "\x0e"}
	for range r.IntN(4 * lines) {
		for range r.IntN(6) {
			b = append(b, parts[r.IntN(len(parts))]...)
		}
		if r.IntN(3*lines) == 0 {
			b = append(b, rare[r.IntN(len(rare))]...)
		}
		b = append(b, []string{"\n", "\r\n", "\r\n", "\r\n"}[r.IntN(4)]...)
	}
	return b
}

// TestFloodIsSkipped checks that little of a flood is drawn beside the lines that stay.
func TestFloodIsSkipped(t *testing.T) {
	for name, line := range map[string]string{
		"plain":   "a line of a log, with a number or two: 12 of 345\r\n",
		"colours": "\x1b[01;34mdirectory\x1b[0m \x1b[31m\x1b[Kmatch\x1b[m\x1b[K and a tab\tfor 終了\r\n",
	} {
		s := New(80, 24, Limits{})
		s.Write([]byte(strings.Repeat("\n", 24)))
		flood := []byte(strings.Repeat(line, 10_000))
		skipped, text := s.skipText(flood)
		if skipped+text != len(flood) || text > len(line)*(24+1000)+minSkip {
			t.Errorf("%s: %d bytes are skipped, %d are not", name, skipped, text)
		}
	}
}
