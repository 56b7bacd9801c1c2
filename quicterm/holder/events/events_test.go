package events

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/screen/marks"
	"github.com/quicterm/quicterm/quicterm/wire"
)

var start = time.Unix(1_700_000_000, 0)

// A log keeps as many events as it says, in as much memory, and knows where a client goes on.
func TestLog(t *testing.T) {
	l := NewLog()
	if got := l.Find(7); got != 1 || l.Ring().Memory() != 0 {
		t.Errorf("an empty log begins at %d and takes %d bytes", got, l.Ring().Memory())
	}
	for range maxKept + 500 {
		l.Append(wire.Event{Kind: wire.EventBell, Time: start.UnixMilli(), Count: 1})
	}
	if first, next := l.Ring().First(), l.Ring().Next(); first != 501 || next != maxKept+501 {
		t.Errorf("events from %d to %d are kept", first, next)
	}
	for from, want := range map[uint64]uint64{1: 501, 501: 501, 600: 600, maxKept + 501: maxKept + 501, 1 << 60: maxKept + 501} {
		if got := l.Find(from); got != want {
			t.Errorf("from %d on, the log begins at %d, want %d", from, got, want)
		}
	}
	for range maxKept {
		l.Append(wire.Event{Kind: wire.EventTitle, Text: strings.Repeat("x", 2*wire.MaxEventText)})
	}
	if memory := l.Ring().Memory(); memory > maxBytes {
		t.Errorf("the log takes %d bytes", memory)
	}
	l.End(wire.ExitStatus{Status: 3})
	b, _ := l.Ring().Slice(l.Ring().Next()-1, 1)
	if f, _, err := buffer.Parse(b); err != nil || f.Type != wire.Exit || f.Payload[0] != 3 {
		t.Errorf("%+v, %v", f, err)
	}
}

func describe(heard []wire.Event) (list []string) {
	for _, e := range heard {
		s := fmt.Sprint(e.Kind)
		if e.Status != nil {
			s += fmt.Sprint(" ", *e.Status)
		}
		if e.Took > 0 {
			s += fmt.Sprintf(" took %d", e.Took)
		}
		if e.Count > 1 {
			s += fmt.Sprintf(" *%d", e.Count)
		}
		list = append(list, s+e.Text)
	}
	return list
}

// The marks of a shell, with which a hook may repeat itself, and those of a shell that does not mark ends.
func TestHearing(t *testing.T) {
	var h Hearing
	at := start
	hear := func(text string) {
		h.Begin(at, false)
		h.Mark(marks.Parse(text))
		at = at.Add(time.Second)
	}
	for _, m := range strings.Fields("A B C A D A B C D;2 D;2 A") {
		hear(m)
	}
	want := []string{"7", "8 took 1000", "7", "8 2 took 1000"}
	if got := describe(h.Take()); !slices.Equal(got, want) { // the first prompt within a command is not known to be its own
		t.Errorf("%q, want %q", got, want)
	}
	h.Bell()
	h.Bell()
	h.Notification("done")
	h.Bell()
	h.Begin(at, true)
	h.Bell()
	h.Notification("heard before")
	if got, want := describe(h.Take()), []string{"9 *2", "10done", "9"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	h.Begin(at, false)
	hear("C")
	h.Forget()
	hear("D")
	if got := describe(h.Take()); got != nil {
		t.Errorf("after a fault: %q", got)
	}
	h.Begin(at, false)
	for range maxHeard + 7 {
		h.Notification("x")
	}
	heard := h.Take()
	if n := len(heard); n != maxHeard+1 || heard[n-1].Kind != wire.EventOmitted || heard[n-1].Count != 7 {
		t.Errorf("of many events there are %d", n)
	}
}

// A scene plays what happens to a terminal, and tells when which event is told.
type scene struct {
	s       Stillness
	now     time.Time
	program func(now time.Time) (reads, atPrompt bool)
	told    []string
	looks   int
}

func newScene() *scene { return &scene{s: NewStillness(start), now: start} }

func (c *scene) after(d time.Duration, what func(*Stillness, time.Time)) {
	c.pass(d)
	if what != nil {
		what(&c.s, c.now)
	}
}

// pass lets time pass, with the looks that are due.
func (c *scene) pass(d time.Duration) {
	end := c.now.Add(d)
	for {
		next := c.s.Next()
		if next.IsZero() || next.After(end) {
			c.now = end
			return
		}
		c.now = next
		if c.s.Due(c.now) {
			c.looks++
			reads, atPrompt := c.program(c.now)
			if kind := c.s.Look(c.now, reads, atPrompt); kind != 0 {
				name := map[wire.EventKind]string{wire.EventPrompt: "prompt", wire.EventWaits: "waits", wire.EventSilent: "silent"}[kind]
				c.told = append(c.told, fmt.Sprintf("%s %v", name, c.now.Sub(start).Round(10*time.Millisecond)))
			}
		}
	}
}

func (c *scene) want(t *testing.T, why string, want ...string) {
	t.Helper()
	if !slices.Equal(c.told, want) {
		t.Errorf("%s: told %q, want %q", why, c.told, want)
	}
	c.told, c.looks = nil, 0
}

func works(time.Time) (bool, bool)    { return false, false }
func waits(time.Time) (bool, bool)    { return true, false }
func atPrompt(time.Time) (bool, bool) { return true, true }

func (s *Stillness) print(now time.Time) { s.Printed(now) }
func (s *Stillness) enter(now time.Time) { s.Entered(now) }

func TestStillness(t *testing.T) {
	c := newScene()
	c.program = atPrompt
	c.after(time.Second, (*Stillness).print)
	c.want(t, "a shell starts", "prompt 50ms")
	c.pass(time.Hour)
	c.want(t, "a prompt is told once")
	if c.looks > 1 {
		t.Errorf("%d looks at a shell at its prompt", c.looks)
	}
	for range 20 {
		c.after(200*time.Millisecond, (*Stillness).print)
	}
	c.pass(time.Minute)
	c.want(t, "a person types a command")

	c = newScene()
	c.program = works
	c.pass(time.Hour)
	c.want(t, "a program that does something silently", "silent 10s")
	if c.looks > 400 {
		t.Errorf("%d looks in an hour", c.looks)
	}
	c.program = waits
	c.pass(11 * time.Second)
	c.told = nil
	for range 100 {
		c.after(3*time.Second, (*Stillness).print)
	}
	c.want(t, "a monitor that prints each 3 s")

	c = newScene()
	c.program = waits // a program that reads keys all the time, and turns something while it works
	for range 600 {
		c.after(100*time.Millisecond, (*Stillness).print)
	}
	c.pass(10 * time.Second)
	c.want(t, "a question behind a spinner", "waits 50ms", "waits 1m1.5s")
	c.after(0, (*Stillness).enter)
	for range 60 {
		c.after(time.Second, (*Stillness).print)
	}
	c.pass(10 * time.Second)
	c.want(t, "the next question, behind a clock", "waits 1m10.05s", "waits 2m11.5s")
	c.program = atPrompt
	c.after(0, (*Stillness).print)
	c.pass(time.Second)
	c.want(t, "a key has ended it", "prompt 2m20.05s")

	c = newScene()
	c.program = func(now time.Time) (bool, bool) { return now.Sub(start) > 5*time.Minute, false }
	for range 100 {
		c.after(time.Second, (*Stillness).print)
	}
	c.pass(time.Hour)
	c.want(t, "a build that asks something at last", "silent 1m50s", "waits 5m7.68s")
}

// A flood of output costs one look-up of the time for some of it, and no look.
func TestFlood(t *testing.T) {
	c := newScene()
	c.program = works
	dues := 0
	for range 100_000 {
		c.now = c.now.Add(100 * time.Microsecond)
		c.s.Printed(c.now)
		if next := c.s.Next(); !next.After(c.now) {
			dues++
			if c.s.Due(c.now) {
				t.Fatal("a look within a flood")
			}
		}
	}
	if dues > 250 {
		t.Errorf("woken %d times in 10 s", dues)
	}
}
