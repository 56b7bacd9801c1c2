//go:build linux || darwin

package holder

import (
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// The agent of a session is that of the client in which a person typed last, at once, until it has left or was away for
// long, and while no guest is connected.
func TestAgentAtKeyboard(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		var offered byte
		w.locked(func(h *Holder) { h.offer = func(id wire.AgentID) { offered = id[0] } })
		attach := func(name string, role wire.Role, agent byte) *client {
			w.instances++
			id := wire.AgentID{agent}
			c, conn := w.joinWith(name, &wire.Attach{
				Instance: wire.InstanceID{0xfd, byte(w.instances)}, PTY: true, Role: role, Agent: id[:],
			})
			c.run(conn, true)
			return c
		}
		want := func(why string, agent byte) {
			t.Helper()
			w.settle()
			w.locked(func(*Holder) {
				if offered != agent {
					t.Errorf("%s: the agent is %d, want %d", why, offered, agent)
				}
			})
		}
		typed := func(c *client) {
			c.write("x")
			if got := w.given(1); got != "x" {
				t.Errorf("the program is given %q", got)
			}
		}
		want("before a client", 0)
		first := attach("a@x", wire.RoleWriter, 1)
		want("the first", 1)
		beside := attach("b@x", wire.RoleShare, 2)
		want("one beside it that has not typed", 1)
		typed(first)
		want("the first has typed", 1)
		typed(beside)
		want("the other has typed", 2)
		watcher := attach("c@x", wire.RoleWatch, 3)
		watcher.write("x")
		want("one that only watches", 2)

		// Another without an agent has none.
		bare := attach("d@x", wire.RoleShare, 0)
		typed(bare)
		want("one without an agent has typed", 0)
		typed(beside)
		want("the other has typed again", 2)

		// A program takes it from nobody.
		script := w.follow("script@x")
		script.enters(wire.Entry{ID: wire.EntryID{1}, Text: []byte("y")})
		w.wantInput("y")
		want("a program has entered a text", 2)
		script.write("z")
		w.wantInput("z")
		want("a program has typed", 2)

		// A guest keeps all from it, also one that only watches.
		for _, role := range []wire.Role{wire.RoleWatch, wire.RoleShare} {
			guest := w.guest("guest", role)
			want("a guest is there", 0)
			guest.hangUp()
			want("it has lost contact", 2)
			guest.resume()
			want("it is back", 0)
			guest.leave()
			want("it has left", 2)
		}

		// One that has lost contact keeps it, but not for ever, also if others are connected.
		time.Sleep(time.Second)
		beside.hangUp()
		want("it has lost contact", 2)
		time.Sleep(agentGrace - time.Second)
		want("it is still away", 2)
		beside.resume()
		time.Sleep(2 * time.Second)
		want("it is back", 2)
		beside.hangUp()
		time.Sleep(agentGrace - time.Second)
		want("it is away again", 2)
		time.Sleep(time.Second)
		want("it is away for long", 0)
		beside.resume()
		want("it is back after long", 2)
		beside.hangUp()
		typed(bare)
		want("another has typed while it is away", 0)
		beside.resume()
		typed(beside)
		want("it types again", 2)
		beside.leave()
		want("it has left: the one that typed before it", 0)
		bare.leave()
		want("so has that one", 1)
		attach("e@x", wire.RoleWriter, 4)
		want("displaced", 4)
		w.locked(func(h *Holder) { h.revokeLocked("a@x", &wire.Revoke{All: true}) })
		want("revoked", 0)
	})
}
