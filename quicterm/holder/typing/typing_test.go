package typing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

var (
	ann = wire.Typist{Client: 1, Name: "ann@x"}
	bob = wire.Typist{Client: 2, Name: "bob@x"}
)

// A terminal is what a queue types into.
type terminal struct {
	t      *testing.T
	now    time.Time
	look   Look
	pastes bool
	marks  bool
	away   uint64 // number of a client that is not connected
	busy   bool   // something happens while the screen is looked at
	drawn  func() // called then
	queue  Queue
	frames uint64
}

func newTerminal(t *testing.T, flags wire.TerminalFlags) *terminal {
	x := &terminal{t: t, now: time.Unix(1e9, 0)}
	x.look = Look{
		Terminal: flags, Taken: true,
		Connected: func(n uint64) bool { return n != x.away },
		Screen: func() (Screen, bool) {
			if x.drawn != nil {
				x.drawn()
			}
			return Screen{x.pastes, x.marks, x.look.Terminal}, !x.busy
		},
	}
	return x
}

// add adds an entry, with its text as its id if it has none.
func (x *terminal) add(c wire.Typist, e wire.Entry) {
	if e.ID == (wire.EntryID{}) {
		copy(e.ID[:], string(e.Text)+string(e.Keys))
	}
	x.frames++
	x.queue.Add(x.now, &Item{Client: c, Frame: x.frames, Entry: e})
}

// want checks all steps that are to be done now, after some time: in each what is told, what is typed, and the frame
// that is handled then.
func (x *terminal) want(why string, after time.Duration, want ...string) {
	x.t.Helper()
	x.now = x.now.Add(after)
	var got []string
	for s, ok := x.queue.Next(x.now, x.look); ok; s, ok = x.queue.Next(x.now, x.look) {
		var text []string
		if e := s.Entered; e != nil {
			told := fmt.Sprintf("%d:%d", e.Frame, e.Outcome)
			if e.Again {
				told += "again"
			}
			if e.After != "" {
				told += "after " + e.After
			}
			text = append(text, told)
		}
		if s.Write != nil {
			text = append(text, fmt.Sprintf("%q", s.Write))
			x.look.Taken = false
		}
		if s.Handled != nil {
			text = append(text, fmt.Sprint("handled ", s.Handled.Frame))
		}
		got = append(got, strings.Join(text, " "))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		x.t.Errorf("%s: the steps are %q, want %q", why, got, want)
	}
}

// Where the kernel edits lines, all is typed at once; elsewhere a paste has to settle before the keys behind it.
func TestType(t *testing.T) {
	x := newTerminal(t, wire.Canonical)
	x.add(ann, wire.Entry{Text: []byte("a line"), Enter: true})
	x.want("a line", 0, `1:0 "a line\r" handled 1`)
	x.look.Taken = true
	x.want("nothing more", time.Minute)
	if x.queue.Active() {
		t.Error("the queue waits for something")
	}

	x = newTerminal(t, 0)
	x.pastes = true
	x.add(ann, wire.Entry{Text: []byte("a\x1b[201~b"), Keys: []byte("\x03"), Enter: true})
	x.want("a paste", 0, `1:0 "\x1b[200~ab\x1b[201~"`)
	x.want("not read", time.Minute)
	x.look.Taken, x.look.Printed = true, x.now
	x.want("not still", settled-1)
	x.want("still", 1, `"\x03\r" handled 1`)
	x.look.Taken = true
	x.add(ann, wire.Entry{Keys: []byte("x")})
	x.want("keys alone", 0, `2:0 "x" handled 2`)
}

// What cannot be typed is told, and the next one has its turn.
func TestRefused(t *testing.T) {
	x := newTerminal(t, wire.Canonical|wire.Echo)
	x.add(ann, wire.Entry{Secret: true, Text: []byte("secret")})
	x.add(ann, wire.Entry{Text: []byte(strings.Repeat("x", maxLine))})
	x.add(ann, wire.Entry{Run: true, Text: []byte("true")})
	x.want("refusals", 0, "1:4 handled 1", "2:5 handled 2", "3:3 handled 3")
	x.look.Reading = true
	x.add(ann, wire.Entry{Run: true, Text: []byte("true")})
	x.want("a program that reads", 0, "4:2 handled 4")
	x.look.Terminal |= wire.Shell
	x.add(ann, wire.Entry{Run: true, Text: []byte("true")})
	x.want("a shell at work", 0, "5:1 handled 5")
	x.look.Prompt, x.look.Terminal = true, wire.Shell
	x.add(ann, wire.Entry{Run: true, Text: []byte("a\rb")})
	x.want("no paste", 0, "6:6 handled 6")
}

// A command line has the shell's prompt until that is there again: other lines wait for it, and what is typed into the
// command does not.
func TestRun(t *testing.T) {
	x := newTerminal(t, wire.Shell)
	x.marks = true
	x.add(ann, wire.Entry{Run: true, Wait: true, Text: []byte("sleep 1")})
	x.want("no prompt", 0)
	x.look.Prompt = true
	x.want("a prompt", 0, `1:0 "sleep 1\r" handled 1`)
	x.look.Prompt = false
	x.add(bob, wire.Entry{Run: true, Text: []byte("ls")})
	x.add(bob, wire.Entry{Text: []byte("yes")})
	x.look.Taken = true
	x.want("input for the command", 0, `3:0 "yes" handled 3`)
	x.look.Taken, x.look.Prompt = true, true
	x.want("the next prompt", 0, `2:0after ann@x "ls\r" handled 2`)
	x.look.Taken, x.look.Prompt = true, false
	x.add(ann, wire.Entry{Run: true, Text: []byte("pwd")})
	x.want("another command line", 0)
	x.queue.Release(bob.Client)
	x.want("a client that is away", 0, "4:1after bob@x handled 4")
}

// Two clients have turns, in the order in which they came, and are told for whom they have waited. One that is not
// connected is not waited for.
func TestOrder(t *testing.T) {
	x := newTerminal(t, wire.Canonical)
	x.add(ann, wire.Entry{Text: []byte("one")})
	x.add(bob, wire.Entry{Text: []byte("two")})
	x.want("the first", 0, `1:0 "one" handled 1`)
	x.look.Taken = true
	x.want("the second", 0, `2:0after ann@x "two" handled 2`)
	x.look.Taken = true
	x.away = ann.Client
	x.add(ann, wire.Entry{Text: []byte("three")})
	x.add(bob, wire.Entry{Text: []byte("four")})
	x.want("who is there", 0, `4:0after ann@x "four" handled 4`)
	x.look.Taken = true
	x.queue.Leave(ann.Client)
	x.away = 0
	x.want("who has left", 0)
}

// What was typed is not typed again, however that has ended, and what is too late is not typed at all.
func TestAgainAndLate(t *testing.T) {
	x := newTerminal(t, 0)
	x.add(ann, wire.Entry{Text: []byte("one"), Enter: true, Within: time.Second})
	x.want("the first", 0, `1:0 "one"`)
	x.add(bob, wire.Entry{Text: []byte("two"), Within: time.Second / 2})
	x.queue.Leave(ann.Client)
	x.want("a client that has left is typed to the end", time.Second, "handled 1", "handled 2")
	x.add(ann, wire.Entry{Text: []byte("one"), Enter: true})
	x.want("again", 0, "3:0again handled 3")
	for i := range maxKnown {
		x.look.Taken = true
		x.add(ann, wire.Entry{ID: wire.EntryID{1, byte(i)}, Keys: []byte("x")})
		x.want("another", 0, fmt.Sprintf(`%d:0 "x" handled %[1]d`, 4+i))
	}
	x.look.Taken = true
	x.add(ann, wire.Entry{Text: []byte("one")})
	x.want("long after", 0, fmt.Sprintf(`%d:0 "one" handled %[1]d`, 4+maxKnown))
}

// Who types by hand after an entry is told of once.
func TestTypists(t *testing.T) {
	x := newTerminal(t, wire.Canonical)
	if x.queue.Typed(ann) {
		t.Error("told before any entry")
	}
	for range 2 {
		x.add(bob, wire.Entry{ID: wire.EntryID{byte(x.frames)}, Keys: []byte("x")})
		x.want("keys", 0, fmt.Sprintf(`%d:0 "x" handled %[1]d`, x.frames))
		x.look.Taken = true
		if len(x.queue.Typists()) > 0 || !x.queue.Typed(ann) || x.queue.Typed(ann) || len(x.queue.Typists()) != 1 {
			t.Error("not told once after an entry")
		}
	}
	for i := range 100 {
		x.queue.Typed(wire.Typist{Client: uint64(10 + i)})
	}
	if n := len(x.queue.Typists()); n > maxTypists {
		t.Errorf("%d are remembered", n)
	}
}

// A client that has left while the screen was looked at types nothing, and one that is revoked not even the rest.
func TestGone(t *testing.T) {
	x := newTerminal(t, wire.Canonical)
	x.drawn = func() { x.queue.Leave(ann.Client) }
	x.add(ann, wire.Entry{Text: []byte("a line"), Enter: true})
	x.want("left meanwhile", 0)
	x.drawn, x.busy = nil, true
	x.add(ann, wire.Entry{Text: []byte("another"), Enter: true})
	x.want("a busy program", 0)
	x.away, x.busy = ann.Client, false
	x.want("away", 0)
	x.queue.Revoke(ann.Client)
	x.away = 0
	x.want("revoked", time.Minute)
	if x.queue.Active() {
		t.Error("the queue waits for something")
	}

	x = newTerminal(t, 0)
	x.pastes = true
	x.add(ann, wire.Entry{Text: []byte("rm"), Enter: true})
	x.want("a paste", 0, `1:0 "\x1b[200~rm\x1b[201~"`)
	x.queue.Revoke(ann.Client)
	x.look.Taken = true
	x.want("revoked before Enter", time.Minute)
}
