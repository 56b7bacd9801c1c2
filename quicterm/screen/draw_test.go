package screen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// An overlay is a random overlay over a screen.
type overlay struct {
	cells  []Placed
	cursor Place
	drawn  bool
}

// draw returns output that draws something over s, or nothing if that is not possible.
func (d *overlay) draw(r *rand.Rand, s *Screen) []byte {
	if !s.Drawable() || r.IntN(8) == 0 {
		return nil
	}
	texts := []string{"", "", " ", "x", "y", "é", "宽", "字"}
	x, y := s.Cursor()
	d.cells, d.drawn = nil, true
	for range r.IntN(8) {
		c := Placed{Place{x + r.IntN(9) - 4, y + r.IntN(4)*r.IntN(2) - 1}, Cell{Text: texts[r.IntN(len(texts))], Width: 1}}
		if c.Text > "\u3000" {
			c.Width = 2
		}
		switch r.IntN(4) {
		case 0:
			c.Style = s.pen
		case 1:
			c.Style = Style{Fg: Palette(uint8(r.IntN(20))), Underline: Underline(r.IntN(3)), Attributes: Attributes(r.IntN(512)) &^ Protected}
		case 2:
			c.Style = Style{Bg: RGB(1, 2, 3)}
		}
		if s.CanDraw(c) {
			d.cells = append(d.cells, c)
		}
	}
	from := Place{x, y}
	if d.cursor = (Place{x + r.IntN(9) - 4, y - r.IntN(2)}); !s.CanMove(d.cursor) {
		d.cursor = Place{min(x, s.cols-1), y}
	}
	return s.Draw(nil, d.cells, from, d.cursor)
}

// erase returns output that undoes draw.
func (d *overlay) erase(s *Screen) []byte {
	if !d.drawn {
		return nil
	}
	d.drawn = false
	return s.Erase(nil, d.cells, d.cursor)
}

// covers reports whether a cell of the screen is covered, with what wide characters take with them.
func (d *overlay) covers(s *Screen, x, y int) bool {
	return d.drawn && slices.ContainsFunc(d.cells, func(c Placed) bool {
		start, end := s.columns(c)
		return c.Y == y && x >= start && x < end
	})
}

// A drawnCase is a program's output in parts, on a terminal that had some output before. Either the terminal's
// cursor begins in the first row, or the screen does not know in which.
type drawnCase struct {
	cols, rows int
	before     []byte
	parts      [][]byte
}

func randomCase(r *rand.Rand, broken bool) drawnCase {
	c := drawnCase{cols: 4 + r.IntN(30), rows: 2 + r.IntN(12)}
	if r.IntN(2) == 0 {
		c.before = []byte(strings.Repeat("before\r\n", r.IntN(2*c.rows)))
	}
	output := randomSession(r)
	if broken {
		output = randomOutput(r, nil)
	}
	for len(output) > 0 {
		n := 1 + r.IntN(min(len(output), 1+r.IntN(40)))
		c.parts = append(c.parts, output[:n])
		output = output[n:]
	}
	return c
}

func (c *drawnCase) screen() *Screen {
	s := New(c.cols, c.rows, Limits{})
	if c.before != nil {
		s.Displace()
	}
	return s
}

func (c *drawnCase) terminal() *Screen {
	t := New(c.cols, c.rows, Limits{})
	t.Write(c.before)
	return t
}

// chosenSeed returns the seed of random cases. It is the same in each run, unless SCREEN_SEED says another one: a test
// that passes does so again.
func chosenSeed() uint64 {
	seed, _ := strconv.ParseUint(os.Getenv("SCREEN_SEED"), 10, 64)
	return seed
}

// TestDraw draws random cells between random parts of output. At every moment, the terminal shows what
// it shows without them, except where they are; after an erase, it is in the same state. SCREEN_CASES
// says how many cases, SCREEN_SEED which ones.
func TestDraw(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("SCREEN_CASES"))
	seed := chosenSeed()
	drawings := 0
	for i := range max(count, 500) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		c := randomCase(r, i%4 == 0)
		s, terminal, plain := c.screen(), c.terminal(), c.terminal()
		var d overlay
		for n, part := range append(c.parts, nil) {
			erase := d.erase(s)
			terminal.Write(erase)
			if got, want := terminal.Snapshot(Snapshot{Lines: 1000}), plain.Snapshot(Snapshot{Lines: 1000}); !bytes.Equal(got, want) {
				t.Fatalf("seed %d, case %d, part %d: after the erase %q of %v:\n got %q\nwant %q\noutput %q",
					seed, i, n, erase, d.cells, got, want, c.parts)
			}
			for _, s := range []*Screen{s, terminal, plain} {
				s.Write(part)
			}
			if draw := d.draw(r, s); draw != nil {
				drawings++
				terminal.Write(draw)
			}
			if diff := differ(&d, s, terminal, plain); diff != "" {
				t.Fatalf("seed %d, case %d, part %d: %s with %v\noutput %q", seed, i, n, diff, d.cells, c.parts)
			}
		}
	}
	t.Logf("%d drawings", drawings)
}

// differ returns where a terminal shows something else than without the drawing.
func differ(d *overlay, s, terminal, plain *Screen) string {
	if terminal.Lines() != plain.Lines() {
		return fmt.Sprintf("%d rows of scrollback, want %d", terminal.Lines(), plain.Lines())
	}
	_, y := s.Cursor()
	_, plainY := plain.Cursor()
	for row := range plain.rows {
		got, want := terminal.Row(row), plain.Row(row)
		for x := range plain.cols {
			if !d.covers(s, x, row-plainY+y) && got.Cell(x) != want.Cell(x) {
				return fmt.Sprintf("%d, %d is %v, want %v", x, row, got.Cell(x), want.Cell(x))
			}
		}
	}
	for i := range plain.Lines() {
		if got, want := terminal.Row(-1-i).Text(), plain.Row(-1-i).Text(); got != want {
			return fmt.Sprintf("scrollback has %q, want %q", got, want)
		}
	}
	return ""
}

// TestLiveDraw compares xterm.js after output as of TestLiveRandom, with random drawings between its parts, with xterm.js
// after the output alone.
func TestLiveDraw(t *testing.T) {
	o, r, cases := startOracle(t, 300)
	failed := 0
	for i := range cases {
		c := randomCase(r, false)
		s := c.screen()
		var d overlay
		drawn, plain := []any{c.before}, []any{c.before}
		for _, part := range append(c.parts, nil) {
			step := append(d.erase(s), part...)
			s.Write(part)
			plain = append(plain, part)
			drawn = append(drawn, append(step, d.draw(r, s)...))
		}
		drawn = append(drawn, d.erase(s))
		want := o.ask(t, liveCase{Cols: c.cols, Rows: c.rows, Steps: plain})
		if want == nil {
			continue
		}
		got := o.ask(t, liveCase{Cols: c.cols, Rows: c.rows, Steps: drawn})
		if diff := diffLive(got, want); diff != "" {
			failed++
			t.Logf("case %d, %dx%d: %.600s\nsteps %q", i, c.cols, c.rows, diff, drawn)
		}
	}
	t.Logf("%d of %d cases differ", failed, cases)
	if failed*100 > cases {
		t.Error("more than 1 % differ")
	}
}

// TestDrawFromPendingWrap checks that no move depends on where BS or CUB go from there: in xterm to the last
// column but one, in tmux to the last one.
func TestDrawFromPendingWrap(t *testing.T) {
	s := New(10, 3, Limits{})
	s.Write([]byte("0123456789"))
	x, y := s.Cursor()
	got := s.Draw(nil, []Placed{{Place{4, 0}, Cell{Text: "x", Width: 1}}}, Place{x, y}, Place{5, 0})
	if want := "\r\x1b[4Cx"; string(got) != want {
		t.Errorf("drawn by %q, want %q", got, want)
	}
}
