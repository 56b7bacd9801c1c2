package terminal

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/vt"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A guesser predicts anything.
type guesser struct {
	random *rand.Rand
	typed  string
	oneRow bool // it predicts in the row of the cursor, as keys change it
}

func (g *guesser) Score() predict.Score                                    { return predict.Score{} }
func (g *guesser) SetMode(predict.Mode)                                    {}
func (g *guesser) SetRTT(time.Duration)                                    {}
func (g *guesser) SetOffline(bool)                                         {}
func (g *guesser) Output(time.Time, *screen.Screen)                        {}
func (g *guesser) Hinted(time.Time, *screen.Screen, wire.Hint)             {}
func (g *guesser) Reset(time.Time)                                         {}
func (g *guesser) InDoubt() bool                                           { return false }
func (g *guesser) Typed(_ time.Time, _ *screen.Screen, b []byte, _ uint64) { g.typed += string(b) }

func (g *guesser) Overlay(_ time.Time, s *screen.Screen) (o predict.Overlay, until time.Time) {
	r := g.random
	x, y := s.Cursor()
	texts := []string{"", "", " ", "x", "y", "é", "宽", "字", "\x1b", "e\u0301", "xy"}
	for range r.IntN(6) {
		c := predict.Cell{X: x + r.IntN(9) - 4, Y: y + r.IntN(4)*r.IntN(2) - 1}
		c.Text, c.Width = texts[r.IntN(len(texts))], 1+r.IntN(2)
		if r.IntN(2) == 0 {
			c.Style = screen.Style{Fg: screen.Palette(uint8(r.IntN(20))), Underline: screen.SingleUnderline}
		}
		o.Cells = append(o.Cells, c)
	}
	if r.IntN(2) == 0 {
		o.Cursor = &predict.Position{X: x + r.IntN(9) - 4, Y: y - r.IntN(2)}
	}
	for i := range o.Cells {
		if g.oneRow {
			o.Cells[i].Y = y
		}
	}
	if g.oneRow && o.Cursor != nil {
		o.Cursor.Y = y
	}
	return o, until
}

// A countedTerminal counts writes.
type countedTerminal struct {
	*screen.Screen
	writes int
}

func (t *countedTerminal) Write(b []byte) (int, error) {
	t.writes++
	return t.Screen.Write(b)
}

// randomOutput returns output of a program, in parts that may end anywhere.
func randomOutput(r *rand.Rand) (parts [][]byte) {
	words := []string{
		"a", "word ", "0123456789012345678901234567890123456789", "\r\n", "\n", "\r", "\t", "\b", "宽字", "e\u0301", "😀",
		"\x1b[31m", "\x1b[m", "\x1b[1;44m", "\x1b[K", "\x1b[J", "\x1b[2J", "\x1b[H", "\x1b[A", "\x1b[3C", "\x1b[2D", "\x1b[5;3H",
		"\x1b[?1049h", "\x1b[?1049l", "\x1b[2;4r", "\x1b[r", "\x1b[4h", "\x1b[4l", "\x1b(0", "\x1b(B", "\x1b[P", "\x1b[@", "\x1b[L",
		"\x1b[M", "\x1b[?2026h", "\x1b[?2026l", "\x1b[?25l", "\x1b[?25h", "\x1b7", "\x1b8", "\x1bM", "\x1b[b", "\x1b]0;title\a",
		"\x1b]8;;http://a.example\a", "\x1b]8;;\a",
	}
	var output []byte
	for range r.IntN(60) {
		output = append(output, words[r.IntN(len(words))]...)
	}
	for len(output) > 0 {
		n := 1 + r.IntN(min(len(output), 40))
		parts = append(parts, output[:n])
		output = output[n:]
	}
	return parts
}

// TestPaintedTerminal types random keys into random output, with random predictions. When these are
// erased, the terminal is in the state in which it is without them, with the same scrollback. PAINT_CASES
// says how many cases, PAINT_SEED which ones.
func TestPaintedTerminal(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("PAINT_CASES"))
	seed, _ := strconv.ParseUint(os.Getenv("PAINT_SEED"), 10, 64)
	synctest.Test(t, func(t *testing.T) { // no time passes, since the test never waits
		for i := range max(count, 300) {
			paintRandomly(t, seed, uint64(i))
		}
	})
}

// paintedTerminal returns a terminal, a display that paints on it when the test says so, and the terminal
// without that.
func paintedTerminal(g *guesser) (terminal *countedTerminal, d *display, plain *screen.Screen) {
	cols, rows := 4+g.random.IntN(30), 2+g.random.IntN(12)
	terminal = &countedTerminal{Screen: screen.New(cols, rows, screen.Limits{})}
	plain = screen.New(cols, rows, screen.Limits{})
	before := []byte(strings.Repeat("before\r\n", g.random.IntN(2*rows)))
	terminal.Screen.Write(before)
	plain.Write(before)

	d = newDisplay(terminal, Config{})
	d.begin(wire.Size{Cols: uint16(cols), Rows: uint16(rows)}, true, nil)
	plain.Write([]byte("\x1b[22;0t"))
	d.endReplay()
	d.predict(g, predict.Always, func() time.Duration { return 0 }, func() {})
	d.painter.wake = func() {}
	d.painter.timer = time.AfterFunc(time.Hour, d.painter.wake)
	return terminal, d, plain
}

func paintRandomly(t *testing.T, seed, i uint64) {
	r := rand.New(rand.NewPCG(seed, i))
	terminal, d, plain := paintedTerminal(&guesser{random: r})
	parts := randomOutput(r)
	var filter vt.ClipboardFilter
	for n, part := range parts {
		d.painter.eraseAll()
		got, want := stateOf(terminal.Screen), stateOf(plain)
		if got != want {
			t.Fatalf("seed %d, case %d, part %d:\n got %q\nwant %q\noutput %q", seed, i, n, got, want, parts)
		}
		if r.IntN(2) == 0 {
			typeKeys(d, []byte("k"), uint64(n+1))
			d.painter.repaint()
		}
		terminal.writes = 0
		d.Write(part)
		part = filter.Filter(part)
		if terminal.writes > 1 || terminal.writes < min(len(part), 1) {
			t.Fatalf("%d writes", terminal.writes)
		}
		plain.Write(part)
	}
	d.restore(false)
}

// When a terminal changes its size, what is drawn is erased from where it is then.
func TestResizePaintedTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range uint64(2000) {
			r := rand.New(rand.NewPCG(1, i))
			terminal, d, plain := paintedTerminal(&guesser{random: r, oneRow: true})
			var filter vt.ClipboardFilter
			for _, part := range randomOutput(r) {
				d.Write(part)
				plain.Write(filter.Filter(part))
			}
			typeKeys(d, []byte("k"), 1)
			d.painter.repaint()
			cols, rows := plain.Size()
			cols, rows = max(2, cols+r.IntN(20)-10), max(2, rows+r.IntN(10)-5)
			if c, r := plain.Size(); c == cols && r == rows {
				cols++
			}
			terminal.Resize(cols, rows)
			plain.Resize(cols, rows)
			d.setSize(wire.Size{Cols: uint16(cols), Rows: uint16(rows)})
			if stateOf(terminal.Screen) != stateOf(plain) {
				t.Errorf("case %d: the terminal keeps what was drawn", i)
			}
			d.restore(false)
		}
	})
}

// stateOf returns all that a terminal's later output depends on.
func stateOf(s *screen.Screen) string {
	return string(s.Snapshot(screen.Snapshot{Lines: 1000}))
}

// oneKey predicts that each typed byte appears at the cursor.
type oneKey struct {
	guesser
	shown []byte
}

func (p *oneKey) Typed(_ time.Time, _ *screen.Screen, b []byte, _ uint64) {
	p.shown = append(p.shown, b...)
}
func (p *oneKey) Output(time.Time, *screen.Screen) { p.shown = nil }
func (p *oneKey) Reset(time.Time)                  { p.shown = nil }
func (p *oneKey) InDoubt() bool                    { return len(p.shown) > 0 }

func (p *oneKey) Overlay(_ time.Time, s *screen.Screen) (o predict.Overlay, until time.Time) {
	x, y := s.Cursor()
	for i, c := range p.shown {
		o.Cells = append(o.Cells, predict.Cell{X: x + i, Y: y, Cell: screen.Cell{Text: string(rune(c)), Width: 1}})
	}
	if len(p.shown) > 0 {
		o.Cursor = &predict.Position{X: x + len(p.shown), Y: y}
	}
	return o, until
}

// painting returns a display that paints, and a function that types a key in a frame.
func painting(t *testing.T) (d *display, wantOut func(why, want string), typed func(key string, frame uint64)) {
	d, out := live()
	d.predict(&oneKey{}, predict.Always, func() time.Duration { return 0 }, func() {})
	return d, wantWritten(t, d, out), func(key string, frame uint64) {
		typeKeys(d, []byte(key), frame)
	}
}

// A prediction is drawn at once, and erased in the write that brings more output.
func TestPaint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, wantOut, typed := painting(t)
		d.Write([]byte("$ "))
		wantOut("a prompt", "$ ")
		typed("l", 1)
		wantOut("a key", "\x1b[?2026hl\x1b[?2026l")
		typed("s", 2)
		wantOut("a second key", "\x1b[?2026h\x1b[D\x1b[1X\x1b[D ls\x1b[?2026l")
		d.Write([]byte("l"))
		wantOut("the echo", "\x1b[?2026h\x1b[2D\x1b[2X\x1b[D l\x1b[?2026l\x1b[Dl")
		typed("x", 3)
		wantOut("a key", "\x1b[?2026hx\x1b[?2026l")
		d.Write([]byte("\x1b["))
		wantOut("half a sequence", "\x1b[?2026h\x1b[D\x1b[1X\x1b[Dl\x1b[?2026l\x1b[Dl\x1b[")
		d.restore(false)
	})
}

// Nothing is drawn when the terminal has another size than the session.
func TestPaintAfterResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, wantOut, typed := painting(t)
		d.Write([]byte("$ "))
		typed("l", 1)
		wantOut("a key", "$ \x1b[?2026hl\x1b[?2026l")
		d.setSize(wire.Size{Cols: 60, Rows: 24})
		wantOut("a resize", "\x1b[?2026h\x1b[D\x1b[1X\x1b[D \x1b[?2026l\x1b[D ")
		typed("s", 2)
		wantOut("a key", "")
		d.Write([]byte("\r\x1b[K$ "))
		typed("s", 3)
		wantOut("a key, before the session has the size", "\r\x1b[K$ ")
		d.setSessionSize(wire.Size{Cols: 60, Rows: 24})
		typed("s", 4)
		wantOut("a key after that", "\x1b[?2026hs\x1b[?2026l")
		d.setSize(wire.Size{Cols: 80, Rows: 24})
		d.setSize(wire.Size{Cols: 60, Rows: 24})
		wantOut("a resize, and back", "\x1b[?2026h\x1b[D\x1b[1X\x1b[D \x1b[?2026l\x1b[D ")
		d.Write([]byte("\r\x1b[K$ "))
		typed("s", 5)
		wantOut("a key after that", "\r\x1b[K$ \x1b[?2026hs\x1b[?2026l")
		d.restore(false)
	})
}

// What we write ourselves, and the end of the session, come after an erase.
func TestPaintAndOwnText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, wantOut, typed := painting(t)
		typed("l", 1)
		wantOut("a key", "\x1b[?2026hl\x1b[?2026l")
		d.print("text")
		wantOut("text", "\x1b[?2026h\x1b[D\x1b[1X\r\n[qt: text]\r\n\x1b[?2026l")
		typed("n", 2)
		wantOut("a key", "\x1b[?2026hn\x1b[?2026l")
		d.notice("somebody watches")
		wantOut("a notice", "\x1b[?2026h\x1b[D\x1b[1X\r\n[qt: somebody watches]\r\n\x1b[?2026l")
		d.Write([]byte("\x1b[?1049h"))
		typed("t", 3)
		wantOut("a key in a full-screen program", "\x1b[?1049h\x1b[?2026ht\x1b[?2026l")
		d.notice("somebody watches")
		wantOut("a notice, in the title", "\x1b[22;2t\x1b]2;qt: somebody watches\x1b\\")
		d.Write([]byte("\x1b[?1049l"))
		wantOut("the end of the program", "\x1b[?2026h\x1b[D\x1b[1X\x1b[?1049l\x1b[?2026l")
		typed("x", 4)
		wantOut("a key", "\x1b[?2026hx\x1b[?2026l")
		d.restore(true)
		wantOut("the end", "\x1b[?2026h\x1b[D\x1b[1X\x1b[?2026l\x1b[23;2t\x1b[23;0t\x1b[J")
	})
}

// Keys that are typed while the terminal takes no output do not pile up.
func TestKeysOfStuckTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, wantOut, typed := painting(t)
		d.mu.Lock() // as while a write blocks
		for i := range uint64(10_000) {
			typed("x", i+1)
		}
		d.painter.mu.Lock()
		waiting := len(d.painter.keys)
		d.painter.mu.Unlock()
		if waiting > maxUntold+2 {
			t.Errorf("%d keys wait for a terminal that takes no output", waiting)
		}
		d.mu.Unlock()
		wantOut("the newest keys", "\x1b[?2026h"+strings.Repeat("x", 79)+"\x1b[79D\x1b[?2026l")
		d.Write([]byte("$ "))
		typed("l", 10_001)
		wantOut("a key after that", "\x1b[?2026h\x1b[79X$ \x1b[?2026l\x1b[D \x1b[?2026hl\x1b[?2026l")
		d.restore(false)
	})
}
