//go:build linux || darwin

package holder

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// reader attaches a client that gets events from one on, or new ones, without its carrier.
func (w *world) reader(from uint64) *client {
	w.t.Helper()
	w.instances++
	req := &wire.Attach{Instance: wire.InstanceID{0xfe, byte(w.instances)}, Role: wire.RoleWatch, Events: true}
	if req.Replay = (wire.Replay{Kind: wire.ReplayFrom, From: from}); from == 0 {
		req.Replay.Kind = wire.ReplayNone
	}
	c, conn := w.joinWith("follower", req)
	if !c.attached.Events {
		w.t.Error("the holder does not know events")
	}
	c.run(conn, true)
	return c
}

// happened describes the events that have come, with their numbers, and the program's end.
func (c *client) happened() (list []string) {
	c.gate.Lock()
	defer c.gate.Unlock()
	kinds := []string{"", "attached", "detached", "displaced", "resized", "title", "cwd", "began", "ended", "bell", "notification",
		"prompt", "waits", "silent", "exited", "omitted", "port-opened", "port-closed"}
	for _, d := range c.frames {
		switch {
		case d.Gap != nil:
			list = append(list, fmt.Sprintf("%d-%d missing", d.Gap.From, d.Gap.To))
		case d.Type == wire.Exit:
			list = append(list, fmt.Sprintf("%d exit %d", d.Seq, d.Payload[0]))
		case d.Type == wire.Happened:
			e, err := wire.ParseEvent(d.Payload)
			if err != nil {
				c.w.t.Error(err)
			}
			text := fmt.Sprintf("%d %s", d.Seq, kinds[e.Kind])
			if e.Port > 0 {
				text += fmt.Sprintf(" %d", e.Port)
			}
			for _, more := range []string{e.Client, e.By, e.Text} {
				if more != "" {
					text += " " + more
				}
			}
			list = append(list, text)
		default:
			c.w.t.Errorf("a frame of type %d", d.Type)
		}
	}
	return list
}

func (c *client) wantHappened(why string, want ...string) {
	c.w.t.Helper()
	if got := c.happened(); !slices.Equal(got, want) {
		c.w.t.Errorf("%s:\n%s\nwant:\n%s", why, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A client that follows is told what happens, in order, over an outage and, when another one continues, once.
func TestEvents(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: wire.Size{Cols: 80, Rows: 24}}, func(w *world) {
		first := w.reader(1)
		a := w.attach("a@x")
		b := w.attach("b@x")
		w.print("\x1b]133;C\x07text\a\x1b]9;it is \x1b\\\x1b]0;title\x07")
		time.Sleep(time.Second)
		first.hangUp()
		w.print("\x1b]133;D;1\x07")
		time.Sleep(time.Second)
		b.hangUp()
		time.Sleep(time.Minute)
		first.resume()
		time.Sleep(time.Second)
		want := []string{
			"1 attached a@x", "2 displaced a@x b@x", "3 attached b@x", "4 began", "5 bell", "6 notification it is ", "7 title title",
			"8 ended", "9 silent", "10 detached b@x",
		}
		first.wantHappened("one reader", want...)
		if len(a.notices) == 0 || len(first.notices) > 0 {
			t.Error("the writer is not told of the client that follows")
		}
		w.reader(5).wantHappened("another reader", want[4:]...)
		late := w.reader(0)
		if _, info := w.state(); len(info.Members) != 3 || info.Members[0].Role != wire.RoleWatch {
			t.Errorf("members: %v", info.Members)
		}
		b.resume()
		b.send(wire.Resize, string(wire.Size{Cols: 100, Rows: 30}.Append(nil)))
		time.Sleep(time.Second)
		w.program.End(3)
		time.Sleep(time.Second)
		late.wantHappened("a new reader", "11 attached b@x", "12 resized b@x", "13 exited", "14 exit 3")
		first.wantHappened("one reader", append(want, late.happened()...)...)
	})
}

// A reader that is slower than events are told, or has been away, is told exactly which are missing.
func TestEventsMissing(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		first := w.reader(1)
		first.hangUp()
		for range 120 {
			w.print(strings.Repeat("\x1b]9;x\x07", 100))
			time.Sleep(time.Second)
		}
		first.resume()
		time.Sleep(time.Second)
		got := first.happened()
		if len(got) != 10001 || got[0] != "1-2000 missing" || !strings.HasPrefix(got[1], "2001 ") {
			t.Errorf("%d frames, that begin with %q", len(got), got[:2])
		}
		if late := w.reader(1); late.attached.First != 2001 {
			t.Errorf("a new reader begins at %d", late.attached.First)
		}
	})
}

// A client cannot have events in a role that types, in another scope, nor output of a pipe.
func TestEventsRefused(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Scope: "s"}, func(w *world) {
		for why, test := range map[string]struct {
			open wire.Open
			req  wire.Attach
			want string
		}{
			"a writer":            {wire.Open{Scope: "s"}, wire.Attach{PTY: true, Events: true}, "watch or peek"},
			"another scope":       {wire.Open{Scope: "t"}, wire.Attach{Role: wire.RoleWatch, Events: true}, "no such session"},
			"no terminal allowed": {wire.Open{Scope: "s", NoPTY: true}, wire.Attach{Role: wire.RoleWatch, Events: true}, "may not have a terminal"},
		} {
			m, _ := w.ask(&test.open, &test.req)
			var refusal wire.Error
			if err := m.Decode(&refusal); err != nil || !strings.Contains(refusal.Text, test.want) {
				t.Errorf("%s: %v, %q", why, err, refusal.Text)
			}
		}
	})
}

// Of a pipe there is only its end, and a client that follows it changes nothing.
func TestEventsOfPipe(t *testing.T) {
	inBubble(t, wire.Launch{}, func(w *world) {
		f := w.reader(1)
		a := w.attach("a@x")
		w.print("\a")
		w.reader(1).leave()
		time.Sleep(time.Minute)
		f.wantHappened("while it runs")
		if len(w.program.Signals()) > 0 {
			t.Error("the program was hung up when a client has left that follows")
		}
		w.program.End(5)
		a.awaitExit()
		time.Sleep(time.Second)
		f.wantHappened("at its end", "1 exited", "2 exit 5")
		if !w.over() {
			t.Error("the session is not over")
		}
	})
}

// The end of a session is kept for a client that follows it and is away, for a while.
func TestEventsAway(t *testing.T) {
	for away, told := range map[time.Duration]bool{followerGrace / 2: true, 2 * followerGrace: false} {
		inBubble(t, wire.Launch{PTY: true}, func(w *world) {
			f := w.reader(0)
			a := w.attach("a@x")
			time.Sleep(time.Second)
			f.hangUp()
			w.program.End(5)
			a.awaitExit()
			time.Sleep(away)
			if synctest.Wait(); w.over() == told {
				t.Errorf("%v after the end, the session is over: %v", away, w.over())
			}
			if !told {
				return
			}
			f.resume()
			time.Sleep(10 * time.Second)
			f.wantHappened("back", "1 attached a@x", "2 exited", "3 exit 5")
			if !w.over() {
				t.Error("the session is not over when all know its end")
			}
		})
	}
}

// Clients that follow are told of other sessions that they may see.
func TestAppeared(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Scope: "s"}, func(w *world) {
		var readers []*client
		for i, scope := range []string{"s", ""} {
			c, conn := w.joinBy(wire.Open{Scope: scope}, &wire.Attach{
				Instance: wire.InstanceID{byte(i + 1)}, Role: wire.RoleWatch, Events: true, Replay: wire.Replay{Kind: wire.ReplayNone},
			})
			c.run(conn, true)
			readers = append(readers, c)
		}
		want := func(why string, n ...int) {
			t.Helper()
			for i, c := range readers {
				if len(c.notices) != n[i] {
					t.Errorf("%s: reader %d has %d notices, want %d", why, i, len(c.notices), n[i])
				}
			}
		}
		appeared := func(scope string) {
			m, _ := w.ask(&wire.Open{}, &wire.Appeared{Scope: scope})
			w.want("appeared", m, &wire.Done{})
			w.settle()
		}
		appeared("")
		want("of no scope", 0, 1)
		appeared("s")
		want("of its own scope", 1, 2)
		readers[0].hangUp()
		readers[0].resume()
		want("back", 2, 2)
		for _, scope := range []string{"s", "t", ""} {
			var s wire.State
			m, _ := w.ask(&wire.Open{Scope: scope}, &wire.Query{})
			if w.want("query", m, &s); !s.Follows {
				t.Errorf("in scope %q, the state does not say that it is followed", scope)
			}
		}
	})
}
