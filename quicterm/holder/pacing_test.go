//go:build linux || darwin

package holder

import (
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A program on a terminal never waits without a client. The next client learns exactly
// what has left the ring.
func TestTerminalNeverWaitsWithoutClient(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 1 << 20}, func(w *world) {
		all := lines(5 << 20)
		if !w.printing(all)() {
			t.Fatal("the program waits, without a client")
		}
		a := w.attach("a@x")
		a.awaitOutput(all[len(all)-1000:])
		frames, bytes := a.lost()
		size := len(wire.Sizing{}.Append(nil)) // payload of the Resize that begins the log
		if bytes == 0 || int(bytes)-size+len(a.output()) != len(all) || !strings.HasSuffix(all, a.output()) {
			t.Errorf("lost %d frames with %d bytes, and received %d; the program has printed %d",
				frames, bytes, len(a.output()), len(all))
		}
	})
}

// A client that reads nothing stops a program on a terminal for stallLimit, and misses
// nothing when it reads again.
func TestStalledClient(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 16 << 20}, func(w *world) {
		c, conn := w.join("a@x") // and reads nothing
		all := lines(8 << 20)
		start := time.Now()
		done := w.printing(all)
		if done() {
			t.Fatal("the program does not wait for a client that is there")
		}
		w.locked(func(h *Holder) {
			want := h.clients.backlog(time.Now(), h.clients.writer())
			if n := h.ring.Size(1); n < want || n > want+2*maxRead {
				t.Errorf("%d bytes wait for the client, want about %d", n, want)
			}
		})
		for !done() {
			time.Sleep(time.Second / 10)
		}
		if d := time.Since(start); d < stallLimit || d > stallLimit+time.Second {
			t.Errorf("the program has waited for %v, want %v", d, stallLimit)
		}
		c.run(conn, true)
		c.awaitOutput(all)
	})
}

// A client with a dead carrier and a working one is connected, and the program waits only
// for the working one.
func TestStalledCarrier(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 16 << 20}, func(w *world) {
		c, dead := w.join("a@x")
		defer dead.Close()
		c.resume()
		all := lines(8 << 20)
		start := time.Now()
		w.print(all)
		c.awaitOutput(all)
		if d := time.Since(start); d > stallLimit/2 {
			t.Errorf("took %v with one of two carriers dead", d)
		}
	})
}

// Who follows a pipe gets what the ring has room for and the end, does not slow it, and leaves nothing of it out for its
// own client.
func TestPipeIsFollowed(t *testing.T) {
	inBubble(t, wire.Launch{Buffer: 1 << 20, Scope: "key"}, func(w *world) {
		follow := func(name string) (*client, carrier.Carrier) {
			w.instances++
			open := wire.Open{Client: name, Scope: "key"}
			return w.joinBy(open, &wire.Attach{
				Instance: wire.InstanceID{byte(w.instances)}, PTY: true, Role: wire.RoleWatch, Whole: true,
				Replay: wire.Replay{Kind: wire.ReplayFrom},
			})
		}
		for scope, role := range map[string]wire.Role{"key": wire.RolePeek, "": wire.RoleWatch} {
			m, _ := w.ask(&wire.Open{Scope: scope}, &wire.Attach{PTY: true, Role: role, Whole: true})
			var e wire.Error
			if w.want("refusal", m, &e); !strings.Contains(e.Text, "qt tail and qt wait --exit") {
				t.Errorf("scope %q, role %v: %+v", scope, role, e)
			}
		}
		a, conn := w.joinBy(wire.Open{Client: "a@x", Scope: "key"}, &wire.Attach{Instance: wire.InstanceID{99}})
		a.run(conn, true)
		w.print("first\n")
		a.holds = true
		b, conn := follow("b@x")
		b.run(conn, true)
		stopped, conn := follow("stopped@x")
		stopped.holds = true
		stopped.run(conn, true)
		a.listen()
		all := lines(12 << 20)
		w.printing(all)
		a.awaitOutput("first\n" + all)
		stopped.listen()
		w.program.End(9)
		for _, c := range []*client{a, b, stopped} {
			if got := c.awaitExit(); got != 9 {
				t.Errorf("%s: status %d, want 9", c.name, got)
			}
		}
		if frames, _ := a.lost(); frames > 0 {
			t.Errorf("its own client has lost %d frames", frames)
		}
		for _, c := range []*client{b, stopped} {
			frames, _ := c.lost()
			if !strings.HasSuffix(c.output(), all[len(all)-1000:]) || c == stopped && frames == 0 {
				t.Errorf("%s has lost %d frames, and %d bytes that end in %q", c.name, frames, len(c.output()), c.output()[len(c.output())-50:])
			}
		}
	})
}

// A command's output waits for its client, connected or not, and nothing is lost.
func TestPipeWaits(t *testing.T) {
	inBubble(t, wire.Launch{Buffer: 1 << 20, PipeTTL: 10 * time.Hour}, func(w *world) {
		all := lines(12 << 20)
		done := w.printing(all)
		wait := func(why string) {
			t.Helper()
			time.Sleep(time.Hour)
			if done() {
				t.Fatalf("%s: the program does not wait", why)
			}
			w.locked(func(h *Holder) {
				if n := h.ring.Memory(); n > 1<<20 || n < 1<<19 {
					t.Errorf("%s: the ring takes %d bytes", why, n)
				}
			})
		}
		wait("no client yet")
		a, conn := w.join("a@x")
		wait("a client that reads nothing")
		a.holds = true
		a.run(conn, true)
		wait("a client that deals with nothing")
		a.hangUp()
		wait("the client is gone")
		a.listen()
		a.resume()
		a.awaitOutput(all)
		if frames, _ := a.lost(); frames > 0 || a.output() != all {
			t.Errorf("%d bytes, %d frames lost; the program has printed %d bytes", len(a.output()), frames, len(all))
		}
		w.program.End(9)
		if got := a.awaitExit(); got != 9 {
			t.Errorf("status %d, want 9", got)
		}
		a.awaitEnd()
		if !w.over() {
			t.Error("the session continues after its end was seen")
		}
	})
}
