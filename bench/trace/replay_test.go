package trace

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A story makes a trace by hand: each line is a key, " > ", and what the program answers 2 ms later.
// A key comes 100 ms after the one before. Lines without a key are output, and those that begin
// with # are markers.
func story(lines ...string) *Study {
	t := &Trace{Name: "story", Cols: 20, Rows: 4}
	at := time.Duration(0)
	add := func(code asciicast.Code, data string) {
		t.Events = append(t.Events, asciicast.Event{At: at, Code: code, Data: data})
	}
	for _, line := range lines {
		if label, ok := strings.CutPrefix(line, "#"); ok {
			add(asciicast.Marker, label)
			continue
		}
		key, answer, ok := strings.Cut(line, " > ")
		if !ok {
			add(asciicast.Output, line)
			continue
		}
		at += 100 * time.Millisecond
		add(asciicast.Input, key)
		if at += 2 * time.Millisecond; answer != "" {
			add(asciicast.Output, answer)
		}
		at -= 2 * time.Millisecond
	}
	return NewStudy(t)
}

// typing is a story with a word, a typo, a move, an insert, a history search and Enter.
func typing() *Study {
	return story("$ ", "l > l", "a > a", "\x7f > \b \b", "s > s", "\x1b[D > \b", "x > xs\b",
		"\x1b[A > \r$ make\x1b[K", "\r > \r\nall done\r\n$ ", "e > e")
}

// none predicts nothing.
type none struct{}

func (none) Typed(time.Time, *screen.Screen, []byte, uint64) {}
func (none) Output(time.Time, *screen.Screen)                {}
func (none) Hinted(time.Time, *screen.Screen, wire.Hint)     {}
func (none) Reset(time.Time)                                 {}
func (none) SetRTT(time.Duration)                            {}
func (none) InDoubt() bool                                   { return false }
func (none) Overlay(time.Time, *screen.Screen) (predict.Overlay, time.Time) {
	return predict.Overlay{}, time.Time{}
}

// An oracle draws what each key does: all of the screen.
type oracle struct {
	none
	u    *truth
	keys int
	got  int
}

func (o *oracle) Typed(time.Time, *screen.Screen, []byte, uint64) { o.keys++ }
func (o *oracle) Output(time.Time, *screen.Screen)                { o.got++ }
func (o *oracle) Reset(time.Time)                                 { o.got++ }

func (o *oracle) Overlay(_ time.Time, s *screen.Screen) (over predict.Overlay, until time.Time) {
	if o.keys == 0 || o.u.from[o.got] >= o.u.keys[o.keys-1].after {
		return over, until
	}
	v := o.u.views[o.u.keys[o.keys-1].after]
	for y := range v.rows {
		for x, text := range v.line(top(s) + uint64(y)) {
			if text != glyph(s.Row(y).Cell(x)) {
				over.Cells = append(over.Cells, predict.Cell{X: x, Y: y, Cell: screen.Cell{Text: text, Width: 1}})
			}
		}
	}
	over.Cursor = &predict.Position{X: v.cursor.x, Y: int(v.cursor.row - top(s))}
	return over, until
}

var networks = []Network{
	{RTT: 100 * time.Millisecond},
	{RTT: 300 * time.Millisecond, Loss: 0.05},
	{RTT: 300 * time.Millisecond, Loss: 0.3, Jitter: 80 * time.Millisecond},
}

func TestOracle(t *testing.T) {
	s := typing()
	for _, n := range networks {
		for seed := range uint64(20) {
			n.Seed = seed
			r := s.Replay(&oracle{u: s.truth}, n)
			if r.Keys != 9 || r.Typing != 6 || r.Drawn != 9 || r.TypingDrawn != 6 ||
				r.Wrong != 0 || r.Redrawn != 0 || r.Unequal != 0 {
				t.Fatalf("%+v: an oracle gets %+v", n, *r)
			}
		}
	}
}

func TestNone(t *testing.T) {
	for _, n := range networks {
		r := typing().Replay(none{}, n)
		if r.Keys != 9 || r.Typing != 6 || r.TypingDrawn != 0 || r.Wrong != 0 || r.Unequal != 0 {
			t.Errorf("%+v: no prediction gets %+v", n, *r)
		}
	}
}

// Without a round trip, no key needs a prediction.
func TestNoNetwork(t *testing.T) {
	if r := typing().Replay(none{}, Network{}); r.Drawn != 9 {
		t.Errorf("without a network: %+v", *r)
	}
}

// A liar draws a cell from one time until another.
type liar struct {
	none
	cells    []predict.Cell
	from, to time.Duration
	cursor   *predict.Position
}

func (l liar) Overlay(now time.Time, _ *screen.Screen) (o predict.Overlay, until time.Time) {
	switch at := now.Sub(epoch); {
	case at < l.from:
		return o, epoch.Add(l.from)
	case at < l.to:
		return predict.Overlay{Cells: l.cells, Cursor: l.cursor}, epoch.Add(l.to)
	}
	return o, until
}

func cellAt(x, y int, text string) predict.Cell {
	return predict.Cell{X: x, Y: y, Cell: screen.Cell{Text: text, Width: 1}}
}

// A wrong cell counts once, with its life.
func TestWrongCell(t *testing.T) {
	s := typing()
	wrong := cellAt(10, 2, "w")
	const ms = time.Millisecond
	cells := func(from, to time.Duration, all ...predict.Cell) liar { return liar{cells: all, from: from, to: to} }
	until := afterwards + 1002*ms // when the replay ends
	for name, test := range map[string]struct {
		l       liar
		wrong   int
		life    time.Duration
		unequal int
	}{
		"for 130 ms":          {cells(150*ms, 280*ms, wrong), 1, 130 * ms, 0},
		"two cells":           {cells(150*ms, 250*ms, wrong, cellAt(11, 2, "v")), 2, 200 * ms, 0},
		"a blank over text":   {cells(150*ms, 160*ms, cellAt(0, 0, " ")), 1, 10 * ms, 0},
		"what is there":       {cells(150*ms, 160*ms, cellAt(0, 0, "$")), 0, 0, 0},
		"a key too early":     {cells(70*ms, 100*ms, cellAt(2, 0, "l")), 1, 30 * ms, 0},
		"the key":             {cells(100*ms, 200*ms, cellAt(2, 0, "l")), 0, 0, 0},
		"a cell that stays":   {cells(time.Second, time.Hour, wrong), 1, until - time.Second, 1},
		"a cursor that stays": {liar{cursor: &predict.Position{X: 19, Y: 3}, from: time.Second, to: time.Hour}, 0, 0, 1},
	} {
		r := s.Replay(test.l, Network{RTT: 100 * ms})
		if r.Wrong != test.wrong || r.WrongFor != test.life || r.Unequal != test.unequal || r.SecretsDrawn != 0 {
			t.Errorf("%s: %d wrong cells for %v, %d unequal, want %d, %v, %d",
				name, r.Wrong, r.WrongFor, r.Unequal, test.wrong, test.life, test.unequal)
		}
	}
}

// A cell that was drawn right, and then not, is drawn twice.
func TestRedrawn(t *testing.T) {
	l := liar{cells: []predict.Cell{cellAt(2, 0, "l")}, from: 110 * time.Millisecond, to: 130 * time.Millisecond}
	if r := typing().Replay(l, Network{RTT: 100 * time.Millisecond}); r.Redrawn != 1 || r.Wrong != 0 {
		t.Errorf("a cell that was taken back: %+v", *r)
	}
	l.to = 300 * time.Millisecond
	l.cells[0].Style.Fg = screen.Palette(1)
	if r := typing().Replay(l, Network{RTT: 100 * time.Millisecond}); r.Redrawn != 0 || r.Restyled != 1 || r.Wrong != 0 {
		t.Errorf("a cell in another colour: %+v", *r)
	}
}

// An echo draws every character that is typed.
type echo struct {
	none
	typed string
}

func (e *echo) Typed(_ time.Time, _ *screen.Screen, b []byte, _ uint64) { e.typed += string(b) }

func (e *echo) Overlay(_ time.Time, s *screen.Screen) (o predict.Overlay, until time.Time) {
	x, y := s.Cursor()
	for i, r := range e.typed {
		if r >= ' ' && x+i < 20 {
			o.Cells = append(o.Cells, cellAt(x+i, y, string(r)))
		}
	}
	return o, until
}

func TestSecret(t *testing.T) {
	s := story("Password: ", "#secret", "h > ", "u > ", "n > ", "#open", "\r > \r\n$ ")
	r := s.Replay(&echo{}, Network{RTT: 100 * time.Millisecond})
	// "u" begins twice: the echo begins behind the cursor again when the answer moves that.
	if r.Secrets != 3 || r.SecretsDrawn < 3 || r.Keys != 1 || r.Wrong < 3 {
		t.Errorf("an echo of secrets gets %+v", *r)
	}
	for _, m := range r.Misses {
		if strings.ContainsAny(m.Typed, "hun") {
			t.Errorf("a secret is in %q", m.Typed)
		}
	}
	if r := s.Replay(none{}, Network{RTT: 100 * time.Millisecond}); r.Secrets != 3 || r.SecretsDrawn != 0 {
		t.Errorf("no prediction gets %+v", *r)
	}
}

// What keys do, and what of it is an effect.
func TestEffects(t *testing.T) {
	for _, test := range []struct {
		lines  []string // the last key is judged
		effect bool
		typing bool
		cells  int
	}{
		{[]string{"$ ", "l > l"}, true, true, 1},
		{[]string{"$ ", "l > "}, false, false, 0},
		{[]string{"$ ", "漢字 > 漢字"}, true, true, 4},
		{[]string{"$ ", "  > \x1b[C"}, true, true, 1},                             // a space on a blank
		{[]string{"$ ", "l > l\x1b[2ms -l\x1b[m\x1b[4D"}, true, true, 1},          // with a suggestion
		{[]string{"$ abc\b\b\b", "l > labc\b\b\b"}, true, true, 4},                // into a line
		{[]string{"$ abc\b\b", "\x7f > \bbc \b\b\b"}, true, true, 3},              // out of a line
		{[]string{"$ ab", "\x7f > \b \b"}, true, true, 1},                         //
		{[]string{"ab", "\x7f > \b"}, true, false, 0},                             // h in vim
		{[]string{"ab\b", "x > \x1b[K"}, true, false, 1},                          // x in vim
		{[]string{"ab\r", "j > \n"}, true, false, 0},                              //
		{[]string{"$ ", "q > \x1b7\x1b[4;1Hstatus\x1b8"}, false, false, 0},        // elsewhere
		{[]string{"$ " + strings.Repeat("x", 17), "y > y"}, true, true, 1},        // the last column
		{[]string{"$ " + strings.Repeat("x", 18), "y > y"}, true, true, 1},        // the next row
		{[]string{"$ " + strings.Repeat("x", 17), "y > y \r"}, true, true, 1},     // as bash wraps
		{[]string{"$ ", strings.Repeat("p", maxKey+1) + " > p"}, false, false, 1}, // a paste
		{[]string{"$ ", "\x1b[A > make"}, true, false, 4},
		{[]string{"$ ", "\r > \r\n$ "}, true, false, 1},
	} {
		s := story(test.lines...)
		k := s.truth.keys[len(s.truth.keys)-1]
		if k.effect != test.effect || k.typing != test.typing || len(k.changed) != test.cells {
			t.Errorf("%q: effect %v, typing %v, %d cells; want %v, %v, %d",
				test.lines, k.effect, k.typing, len(k.changed), test.effect, test.typing, test.cells)
		}
	}
}

// A log notes all that a policy is told.
type log struct {
	none
	told  []string
	doubt bool
}

func (l *log) note(now time.Time, format string, a ...any) {
	l.told = append(l.told, fmt.Sprintf("%d ", now.Sub(epoch).Milliseconds())+fmt.Sprintf(format, a...))
}

func (l *log) Typed(now time.Time, _ *screen.Screen, b []byte, frame uint64) {
	l.note(now, "typed %s %d", b, frame)
}
func (l *log) Output(now time.Time, _ *screen.Screen) { l.note(now, "output") }
func (l *log) Reset(now time.Time)                    { l.note(now, "reset") }
func (l *log) InDoubt() bool                          { return l.doubt }
func (l *log) Hinted(now time.Time, _ *screen.Screen, h wire.Hint) {
	l.note(now, "hint %d %d %d %d", h.Out, h.In, h.Terminal, h.Context)
}
func TestOrder(t *testing.T) {
	ms := time.Millisecond
	trace := &Trace{Cols: 20, Rows: 4, Events: []asciicast.Event{
		{At: 0, Code: "o", Data: "$ "}, {At: 0, Code: "h", Data: "0 08 0007"},
		{At: 100 * ms, Code: "i", Data: "a"}, {At: 104 * ms, Code: "o", Data: "A"},
		{At: 104 * ms, Code: "h", Data: "0 0c 0007"},
		{At: 110 * ms, Code: "r", Data: "30x4"},
		{At: 200 * ms, Code: "i", Data: "b"}, {At: 230 * ms, Code: "h", Data: "2 0c 0007"},
	}}
	l := &log{}
	NewStudy(trace).Replay(l, Network{RTT: 80 * ms})
	want := []string{
		"40 output", "40 hint 1 0 8 7", "100 typed a 1", "184 output", "184 hint 2 0 12 7", "190 reset",
		"200 typed b 2", "310 hint 3 2 12 7",
	}
	if !reflect.DeepEqual(l.told, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(l.told, "\n"), strings.Join(want, "\n"))
	}

	l = &log{doubt: true}
	NewStudy(trace).Replay(l, Network{RTT: 80 * ms})
	answers := 0
	for _, told := range l.told {
		if strings.HasSuffix(told, " hint 3 1 12 7") || strings.HasSuffix(told, " hint 3 2 12 7") {
			answers++
		}
	}
	if answers < 300 {
		t.Errorf("a policy in doubt got %d answers", answers)
	}
}

// What is lost is repeated, and comes in order.
func TestLane(t *testing.T) {
	n := Network{RTT: 120 * time.Millisecond, Loss: 0.3, Seed: 3}
	var sent []time.Duration
	for i := range 10000 {
		sent = append(sent, time.Duration(i)*time.Second)
	}
	late := 0
	for i, at := range n.lane(1).arrivals(sent) {
		if at < sent[i]+60*time.Millisecond || i > 0 && at < sent[i-1] {
			t.Fatalf("packet %d of %v arrives at %v", i, sent[i], at)
		}
		if at > sent[i]+60*time.Millisecond {
			late++
			if at < sent[i]+80*time.Millisecond {
				t.Fatalf("a lost packet of %v arrives at %v", sent[i], at)
			}
		}
	}
	if late < 2800 || late > 3200 {
		t.Errorf("%d of 10000 packets are late at a loss of 30 %%", late)
	}
}

func TestHintText(t *testing.T) {
	h := wire.Hint{In: 12, Terminal: 0x9b, Context: 0x1f3}
	if got, err := ParseHint("12 9b 01f3"); err != nil || got != h {
		t.Errorf("%+v, %v; want %+v", got, err, h)
	}
	for _, bad := range []string{"", "1", "1 2", "x 2 3", "1 100 3", "1 2 10000"} {
		if _, err := ParseHint(bad); err == nil {
			t.Errorf("%q is a hint", bad)
		}
	}
}
