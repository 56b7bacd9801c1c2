//go:build linux || darwin

package holder

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A client whose connection was lost before the answer to its Attach asks again: it gets the
// same answer, and all output.
func TestAttachAgain(t *testing.T) {
	for _, pty := range []bool{true, false} {
		inBubble(t, wire.Launch{PTY: pty}, func(w *world) {
			lost, conn := w.join("a@x")
			conn.Close()
			w.print("meanwhile ")
			a, conn := w.joinAs("a@x", lost.instance)
			if !reflect.DeepEqual(a.attached, lost.attached) {
				t.Errorf("pty %v: answered with %+v, then with %+v", pty, lost.attached, a.attached)
			}
			a.run(conn, true)
			w.print("and now")
			a.awaitOutput("meanwhile and now")
			a.write("typed")
			got := make([]byte, 5)
			if n, err := w.program.In.Read(got); err != nil || string(got[:n]) != "typed" {
				t.Errorf("pty %v: the program was given %q, %v", pty, got[:n], err)
			}
			if _, info := w.state(); len(info.Members) != 1 {
				t.Errorf("pty %v: members %v, want one", pty, info.Members)
			}
			w.program.End(3)
			if got := a.awaitExit(); got != 3 {
				t.Errorf("pty %v: status %d, want 3", pty, got)
			}
		})
	}
}

// Asking again takes no session back from the client that has it now, and learns how a
// session ended that was killed meanwhile.
func TestAttachAgainLater(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		lost, conn := w.join("a@x")
		conn.Close()
		w.attach("b@x")
		req := &wire.Attach{PTY: true, Instance: lost.instance}
		m, _ := w.ask(&wire.Open{Client: "a@x"}, req)
		var e wire.Error
		if w.want("displaced meanwhile", m, &e); e.Code != wire.CodeDisplaced || e.Text != "b@x" {
			t.Errorf("told %+v", e)
		}
		synctest.Wait() // until b's carrier runs
		if _, info := w.state(); len(info.Members) != 1 || info.Members[0].Client != "b@x" {
			t.Errorf("members %v, want b alone", info.Members)
		}
	})
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		lost, conn := w.join("a@x")
		conn.Close()
		synctest.Wait()
		w.kill()
		time.Sleep(time.Minute)
		var s wire.State
		m, _ := w.ask(&wire.Open{Instance: lost.instance}, &wire.Query{})
		if w.want("killed meanwhile", m, &s); !s.Claimed || s.Visible {
			t.Errorf("%+v, want that the session is still its own", s)
		}
		a, conn := w.joinAs("a@x", lost.instance)
		a.run(conn, true)
		if exit := a.awaitExitStatus(); !strings.HasPrefix(exit.Reason, "killed") {
			t.Errorf("told %+v", exit)
		}
	})
}

// A session tells only the instance that it was made for, or that has attached, that it is
// its own, and only in its scope.
func TestClaimed(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Scope: "s", Instance: wire.InstanceID{1}}, func(w *world) {
		ask := func(id wire.InstanceID, scope string, want bool) {
			t.Helper()
			m, _ := w.ask(&wire.Open{Instance: id, Scope: scope}, &wire.Query{})
			var s wire.State
			if w.want("query", m, &s); s.Claimed != want {
				t.Errorf("instance %v in scope %q: %v, want %v", id, scope, s.Claimed, want)
			}
		}
		ask(wire.InstanceID{1}, "s", true)
		ask(wire.InstanceID{1}, "other", false)
		ask(wire.InstanceID{}, "s", false)
		ask(wire.InstanceID{2}, "s", false)
		b := w.attach("b@x")
		ask(b.instance, "s", true)
		ask(wire.InstanceID{1}, "s", true)
	})
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		m, _ := w.ask(&wire.Open{}, &wire.Query{})
		var s wire.State
		if w.want("query", m, &s); s.Claimed {
			t.Error("a session that was made for no instance belongs to zeros")
		}
	})
}

// The input of an Attach is the client's first frame: the program gets it once, however often the client asks and
// sends that frame.
func TestAttachWithInput(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.program.SetModes(ordinary, 7)
		w.program.SetProgress(true, true)
		w.attach("writer@x")
		req := &wire.Attach{
			PTY: true, Instance: wire.InstanceID{7}, Role: wire.RoleShare, Hints: wire.HintsProgram,
			Input: entry("ls\r"),
		}
		_, lost := w.joinWith("a@x", req)
		w.wantInput("ls\r")
		lost.Close()
		a, conn := w.joinWith("a@x", req)
		a.input.Append(wire.EntryFrame, req.Input)
		a.endpoint.Appended(time.Now())
		a.run(conn, true)
		a.write("next")
		w.wantInput("next")
		a.await("acks of both", func() bool { return a.endpoint.Consumed() == 3 })
	})
}

// entry returns the payload of an entry with its text as its id.
func entry(text string) []byte {
	e := wire.Entry{Text: []byte(text)}
	copy(e.ID[:], text)
	return e.Append(nil)
}

// wantInput waits until the program is given something.
func (w *world) wantInput(want string) {
	w.t.Helper()
	got := make([]byte, 1000)
	if n, err := w.program.In.Read(got); err != nil || string(got[:n]) != want {
		w.t.Errorf("the program was given %q, %v; want %q", got[:n], err, want)
	}
}

// A request may have input for a terminal, in a role that types, and not much of it.
func TestAttachWithBadInput(t *testing.T) {
	for _, pty := range []bool{true, false} {
		inBubble(t, wire.Launch{PTY: pty}, func(w *world) {
			ask := func(role wire.Role, size int) string {
				req := &wire.Attach{PTY: pty, Instance: wire.InstanceID{8}, Role: role, Input: make([]byte, size)}
				m, _ := w.ask(&wire.Open{}, req)
				var refusal wire.Error
				w.want("attach", m, &refusal)
				return refusal.Text
			}
			if text := ask(wire.RoleWriter, maxInput+1); !strings.Contains(text, "50177 bytes") {
				t.Errorf("too much: %q", text)
			}
			role := wire.RoleWatch
			if !pty {
				role = wire.RoleWriter
			}
			if text := ask(role, 1); !strings.Contains(text, "only watches it, or without a terminal") {
				t.Errorf("role %v: %q", role, text)
			}
			if _, info := w.state(); len(info.Members) != 0 {
				t.Errorf("attached: %v", info.Members)
			}
		})
	}
}
