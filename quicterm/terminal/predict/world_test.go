package predict_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A program is the far end of a world: it takes input and returns output. flags and context may change by it.
type program interface {
	input(b byte) string
	terminal() (flags wire.TerminalFlags, context uint16)
}

// A world is a person who types, a program behind a link, and the screen of the person. The time is virtual.
type world struct {
	t       *testing.T
	p       *predict.Predictor
	now     time.Time
	rtt     time.Duration
	far     program
	screen  *screen.Screen
	ideal   *screen.Screen // without the link
	events  []event
	frame   uint64 // of the input
	out     uint64
	taken   []time.Time // when the program took each frame
	hints   bool
	overlay predict.Overlay
	until   time.Time

	keys, prompt int // typed, and drawn within 5 ms
	wrong        int // cells drawn that never came
	vanished     int // right ones that were erased before they came
	seen         string
	measured     time.Duration // smoothed round trip, if the world follows it
	there, back  time.Time     // when what was sent last each way arrives: what follows is not sooner
	drawn        string
}

type event struct {
	at time.Time
	do func()
}

const usual = wire.EchoErase | wire.EchoControl | wire.Signals | wire.Extended | wire.UsualKeys

func newWorld(t *testing.T, rtt time.Duration, far program, hello string) *world {
	w := &world{
		t: t, p: predict.New(predict.Adaptive), now: time.Unix(1e9, 0), rtt: rtt, far: far, hints: true,
		screen: screen.New(40, 8, screen.Limits{}), ideal: screen.New(40, 8, screen.Limits{}),
	}
	w.p.SetRTT(rtt)
	w.ideal.Write([]byte(hello))
	flags, context := far.terminal()
	w.send(hello, flags, context)
	w.pass(time.Second)
	return w
}

// after does something later.
func (w *world) after(d time.Duration, do func()) {
	w.events = append(w.events, event{w.now.Add(d), do})
	slices.SortStableFunc(w.events, func(a, b event) int { return a.at.Compare(b.at) })
}

// travel does something when what is sent now has arrived. It does not overtake what was sent before.
func (w *world) travel(last *time.Time, do func()) {
	d := max(w.rtt/2, last.Sub(w.now))
	*last = w.now.Add(d)
	w.after(d, do)
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	end := w.now.Add(d)
	for {
		next := end
		if len(w.events) > 0 && w.events[0].at.Before(next) {
			next = w.events[0].at
		}
		if !w.until.IsZero() && w.until.Before(next) {
			next = w.until
		}
		w.now = next
		if len(w.events) > 0 && !w.events[0].at.After(w.now) {
			do := w.events[0].do
			w.events = w.events[1:]
			do()
			w.paint()
			continue
		}
		w.paint()
		if !w.now.Before(end) {
			return
		}
	}
}

// paint asks for the overlay, and holds it against what the program will show.
func (w *world) paint() {
	w.t.Helper()
	w.overlay, w.until = w.p.Overlay(w.now, w.screen)
	if !w.until.IsZero() && !w.until.After(w.now) {
		w.t.Fatalf("the overlay changes at %v, which is not after %v", w.until, w.now)
	}
	view, ideal := []rune(w.view()), []rune(text(w.ideal, predict.Overlay{}))
	if seen := []rune(w.seen); len(seen) == len(view) && len(seen) == len(ideal) {
		for i, r := range seen {
			if r == ideal[i] && r != view[i] {
				w.vanished++
				w.t.Logf("%v: %q is erased", w.now.Sub(time.Unix(1e9, 0)), r)
			}
		}
	}
	w.seen = string(view)
	cols, rows := w.screen.Size()
	for _, c := range w.overlay.Cells {
		if c.X < 0 || c.Y < 0 || c.X+c.Width > cols || c.Y >= rows || c.Width < 1 {
			w.t.Fatalf("a cell is drawn outside of the screen: %+v", c)
		}
		w.drawn += c.Text
		line := w.screen.Row(c.Y).Line()
		for y := range rows {
			row := w.ideal.Row(y)
			if row.Line() != line || row.Wrapped() != w.screen.Row(c.Y).Wrapped() {
				continue
			}
			if got := row.Cell(c.X).Text; got != c.Text && !(got == "" && c.Text == " " || got == " " && c.Text == "") {
				w.wrong++
				w.t.Logf("%v: drawn %q at %d, will be %q", w.now.Sub(time.Unix(1e9, 0)), c.Text, c.X, got)
			}
		}
	}
}

// types presses keys, each so long after the other.
func (w *world) types(text string, gap time.Duration) {
	for _, r := range text {
		w.press(string(r))
		w.pass(gap)
	}
}

// press sends one key.
func (w *world) press(key string) {
	w.frame++
	frame := w.frame
	var out string
	for _, b := range []byte(key) {
		out += w.far.input(b)
	}
	w.ideal.Write([]byte(out))
	if w.measured > 0 {
		w.p.SetRTT(w.measured)
	}
	w.p.Typed(w.now, w.screen, []byte(key), frame)
	w.keys++
	w.paint()
	if w.view() == text(w.ideal, predict.Overlay{}) {
		w.prompt++
	}
	flags, context := w.far.terminal()
	pressed := w.now
	w.travel(&w.there, func() {
		w.travel(&w.back, func() {
			if w.measured > 0 {
				w.measured += (w.now.Sub(pressed) - w.measured) / 8
			}
		})
		w.taken = append(w.taken, w.now)
		w.send(out, flags, context)
		w.after(35*time.Millisecond, func() { w.send("", flags, context) })
	})
}

// send moves output and the hint behind it to the person.
func (w *world) send(out string, flags wire.TerminalFlags, context uint16) {
	var in uint64
	for _, at := range w.taken {
		if w.now.Sub(at) >= 30*time.Millisecond {
			in++
		}
	}
	if out != "" {
		w.out++
	}
	h := wire.Hint{Out: w.out, In: in, Terminal: flags, Context: context}
	w.travel(&w.back, func() {
		if out != "" {
			w.screen.Write([]byte(out))
			w.p.Output(w.now, w.screen)
		}
		if w.hints {
			w.p.Hinted(w.now, w.screen, h)
		}
	})
}

// view returns what the person sees.
func (w *world) view() string { return text(w.screen, w.overlay) }

// text returns what a screen with an overlay shows, with its cursor.
func text(s *screen.Screen, o predict.Overlay) string {
	cols, rows := s.Size()
	x, y := s.Cursor()
	if o.Cursor != nil {
		x, y = o.Cursor.X, o.Cursor.Y
	}
	out := fmt.Sprintf("%d,%d\n", x, y)
	for y := range rows {
		cells := make([]screen.Cell, cols)
		for x := range cells {
			cells[x] = s.Row(y).Cell(x)
		}
		for _, c := range o.Cells {
			if c.Y == y {
				cells[c.X] = c.Cell
				if c.Width == 2 {
					cells[c.X+1] = screen.Cell{}
				}
			}
		}
		for _, c := range cells {
			switch {
			case c.Text == "" && c.Width == 1:
				out += " "
			default:
				out += c.Text
			}
		}
		out += "\n"
	}
	return out
}

// want fails unless what is seen now is what the program will show.
func (w *world) want(why string) {
	w.t.Helper()
	if got, want := w.view(), text(w.ideal, predict.Overlay{}); got != want {
		w.t.Errorf("%s: the person sees\n%s\nand the program will show\n%s", why, got, want)
	}
}

// settle waits for all answers.
func (w *world) settle() {
	w.t.Helper()
	w.pass(3*w.rtt + 3*time.Second)
	if len(w.overlay.Cells) != 0 || w.overlay.Cursor != nil {
		w.t.Errorf("after all answers this is still drawn: %+v", w.overlay)
	}
	w.want("at the end")
}
