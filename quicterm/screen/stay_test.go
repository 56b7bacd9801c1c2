package screen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// contents returns the rows of the scrollback and of the main screen with their cells, and its cursor.
func contents(s *Screen) string {
	var b strings.Builder
	x, y := s.x, s.y
	if s.Alternate() {
		x, y = s.main.x, s.main.y
	}
	fmt.Fprintln(&b, s.cols, s.rows, x, y, s.history.lines)
	for y := -s.history.lines; y < s.rows; y++ {
		r := s.rowOf(y)
		fmt.Fprint(&b, r.line, r.wrapped)
		for x := range s.cols {
			fmt.Fprintf(&b, " %v", Row{s, r}.Cell(x))
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// Nothing is printed in other sizes, or the same again, or on the alternate screen: afterwards the main screen
// and the scrollback are equal, cell for cell.
func TestVisits(t *testing.T) {
	seed := chosenSeed()
	for i := range 400 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		cols, rows := 2+r.IntN(40), 1+r.IntN(12)
		s := New(cols, rows, Limits{Lines: 1 + r.IntN(40), Bytes: 1 << 20})
		for range 1 + r.IntN(3) {
			s.Write(randomOutput(r, nil))
			for range r.IntN(60) {
				fmt.Fprintf(s, "\x1b[3%dm%s宽e\u0301 \x1b[m", r.IntN(8), strings.Repeat("word ", r.IntN(12)))
				if r.IntN(3) == 0 {
					s.Write([]byte("\r\n"))
				}
			}
			if r.IntN(4) == 0 { // a wrap is pending
				s.Write([]byte(strings.Repeat("w", cols)))
			}
		}
		if !s.Ground() {
			s.Write([]byte("\x18"))
		}
		want := contents(s)
		for range 1 + r.IntN(4) {
			s.Resize(2+r.IntN(60), 1+r.IntN(20))
			checkInvariants(t, s)
			switch x := s.x; {
			case s.Alternate():
				s.Write([]byte("\x1b[H\x1b[2Jsomething else\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"))
				s.Write([]byte("\x1b[H"))
			case r.IntN(2) == 0 && x > 0 && x < s.cols && s.modes&modeMargins == 0: // a prompt is drawn again
				line := *s.buf.row(s.y)
				line.cells = append([]cell(nil), line.cells...)
				s.Write([]byte("\r"))
				copy(s.buf.row(s.y).cells, line.cells)
				s.x = x
			}
		}
		s.Resize(cols, rows)
		checkInvariants(t, s)
		if got := contents(s); got != want {
			g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
			for n := range min(len(g), len(w)) {
				if g[n] != w[n] {
					t.Fatalf("case %d of seed %d: row %d is\n%s\nwant\n%s", i, seed, n-1, g[n], w[n])
				}
			}
		}
	}
}

// Lines that are wrapped in a size that is visited join again, below those from before.
func TestPrintedInVisit(t *testing.T) {
	s := New(20, 6, Limits{})
	s.Write([]byte("before, wrapped in two rows\r\n$ "))
	s.Resize(10, 4)
	s.Write([]byte("ls\r\nthis wraps there\r\n$ "))
	s.Resize(20, 6)
	got := strings.Join(rowsOf(s), "|")
	if !strings.Contains(got, "this wraps there|") {
		t.Errorf("got %q", got)
	}
	s.Resize(30, 6)
	if got := strings.Join(rowsOf(s), "|"); !strings.Contains(got, "before, wrapped in two rows|") || !strings.Contains(got, "$ ls|") {
		t.Errorf("wider: %q", got)
	}
}

// What was erased does not come back with an earlier size.
func TestErasedInVisit(t *testing.T) {
	for why, erase := range map[string]func(s *Screen){
		"the scrollback, by the program": func(s *Screen) { s.Write([]byte("\x1b[3J")) },
		"the scrollback, by the user":    func(s *Screen) { s.ClearHistory() },
		"all":                            func(s *Screen) { s.Write([]byte("\x1bc")) },
	} {
		s := New(20, 3, Limits{})
		s.Write([]byte("secret\r\n1\r\n2\r\n3\r\n4"))
		s.Resize(10, 2)
		erase(s)
		s.Resize(20, 3)
		if got := strings.Join(rowsOf(s), "|"); strings.Contains(got, "secret") {
			t.Errorf("%s: %q", why, got)
		}
	}
}
