//go:build linux || darwin

package holder

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// attachAs is attach in a role.
func (w *world) attachAs(name string, role wire.Role) *client {
	w.t.Helper()
	c, conn := w.joinIn(name, role)
	c.run(conn, true)
	return c
}

// joinIn is join in a role.
func (w *world) joinIn(name string, role wire.Role) (*client, carrier.Carrier) {
	w.t.Helper()
	w.instances++
	return w.joinWith(name, &wire.Attach{
		Instance: wire.InstanceID{0xff, byte(w.instances >> 8), byte(w.instances)},
		PTY:      true,
		Size:     wire.Size{Cols: 80, Rows: 24},
		Role:     role,
	})
}

// told returns what a client was told of others: "+" or "-", their number, role and name.
func (c *client) told() (told []string) {
	c.gate.Lock()
	defer c.gate.Unlock()
	for _, n := range c.notices {
		switch n.Code {
		case wire.NoticeJoined:
			told = append(told, "+"+n.Text)
		case wire.NoticeLeft:
			told = append(told, "-"+n.Text)
		}
	}
	return told
}

// given returns what the program was given after n bytes were read.
func (w *world) given(n int) string {
	w.t.Helper()
	got := make([]byte, n)
	if _, err := io.ReadFull(w.program.In, got); err != nil {
		w.t.Fatal(err)
	}
	return string(got)
}

// A watcher sees the output, and nothing that it sends has an effect.
func TestWatcherChangesNothing(t *testing.T) {
	for _, role := range []wire.Role{wire.RoleWatch, wire.RolePeek} {
		inBubble(t, wire.Launch{PTY: true, Buffer: 16 << 20}, func(w *world) {
			a := w.attach("a@x")
			b := w.attachAs("b@x", role)
			if b.attached.Role != role || b.attached.Created {
				t.Errorf("attached %+v", b.attached)
			}
			size := w.program.Size()
			large := wire.Size{Cols: 200, Rows: 100}
			b.send(wire.Resize, string(large.Append(nil)))
			b.write("typed by b")
			b.send(wire.Signal, "KILL")
			b.send(wire.Signal, "HUP")
			b.send(wire.EOF, string([]byte{byte(wire.StreamStdin)}))
			b.send(wire.Skip, "")
			b.notify(wire.NoticeReaderGone, "\x01")
			a.write("typed by a")
			if got := w.given(10); got != "typed by a" {
				t.Errorf("the program was given %q", got)
			}
			w.print("output")
			a.awaitOutput("output")
			b.awaitOutput("output")
			time.Sleep(time.Minute)
			if got := w.program.Size(); got != size || len(w.program.Signals()) > 0 {
				t.Errorf("size %v, signals %v", got, w.program.Signals())
			}
			w.locked(func(h *Holder) {
				if n := h.clients.find(b.instance).endpoint.Pending(); n > 0 {
					t.Errorf("%d frames of its input are kept", n)
				}
			})
			a.leave()
			w.wantPhase("a watcher alone", wire.PhaseDetached, 0)
			b.leave()
			b.awaitEnd()
		})
	}
}

// A watcher that reads nothing neither slows the program nor keeps its output.
func TestStoppedWatcher(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 4 << 20}, func(w *world) {
		a := w.attach("a@x")
		w.joinIn("b@x", wire.RoleWatch) // and reads nothing
		all := lines(10 << 20)
		start := time.Now()
		w.printing(all)
		a.awaitOutput(all)
		if d := time.Since(start); d > stallLimit/2 {
			t.Errorf("the output took %v", d)
		}
		time.Sleep(time.Second)
		w.locked(func(h *Holder) {
			if n := h.ring.Memory(); n > history+2<<20 {
				t.Errorf("the ring takes %d bytes", n)
			}
		})
	})
}

// Two clients type, each a frame at a time, and both get the output. The terminal has the
// size of the one that does not share it.
func TestShare(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		a := w.attach("a@x")
		b := w.attachAs("b@x", wire.RoleShare)
		small, large := wire.Size{Cols: 60, Rows: 20}, wire.Size{Cols: 200, Rows: 50}
		b.send(wire.Resize, string(small.Append(nil)))
		a.send(wire.Resize, string(large.Append(nil)))
		time.Sleep(time.Second)
		if got := w.program.Size(); got != large {
			t.Errorf("the terminal has size %v, want that of the writer, %v", got, large)
		}
		for _, c := range []*client{a, b} { // the first frame is given at once, and waits
			for range 3 {
				c.write(c.name[:1])
			}
			synctest.Wait()
		}
		if got := w.given(6); got != "ababab" {
			t.Errorf("the program was given %q, want them in turns", got)
		}
		w.print("for both")
		a.awaitOutput("for both")
		b.awaitOutput("for both")
		if n := len(a.notices); n != 1 || a.told()[0] != "+2 1 b@x" {
			t.Errorf("the writer was told %+v", a.notices)
		}
		b.leave()
		b.awaitEnd()
		synctest.Wait()
		if got := w.program.Size(); got != large {
			t.Errorf("the terminal has size %v then, want that of the writer, %v", got, large)
		}
		w.wantPhase("the writer is still there", wire.PhaseAttached, time.Second)
	})
}

// A new writer displaces all that type, and no watcher.
func TestWriterDisplacesSharers(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a, b := w.attach("a@x"), w.attachAs("b@x", wire.RoleShare)
		c := w.attachAs("c@x", wire.RoleWatch)
		w.attach("d@x")
		for _, lost := range []*client{a, b} {
			lost.awaitEnd()
			if i := slices.IndexFunc(lost.notices, func(n session.Notice) bool { return n.Code == wire.NoticeDisplaced }); i < 0 {
				t.Errorf("%s was told %v", lost.name, lost.notices)
			}
		}
		w.print("on")
		c.awaitOutput("on")
	})
}

// A description of the session names its clients with their roles, but none that peeks.
func TestMembers(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		start := time.Now().Unix()
		w.attach("a@x")
		time.Sleep(time.Minute)
		w.attachAs("b@x", wire.RoleWatch)
		w.attachAs("c@x", wire.RolePeek)
		_, info := w.state()
		want := []wire.Member{{Client: "a@x", Since: start}, {Client: "b@x", Role: wire.RoleWatch, Since: start + 60}}
		if !slices.Equal(info.Members, want) {
			t.Errorf("members %+v", info.Members)
		}
	})
}

// Each client is told another name of the session, also one that was away meanwhile, and one that came before.
func TestClientsAreToldTheName(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Name: "1"}, func(w *world) {
		a, b := w.attach("a@x"), w.attachAs("b@x", wire.RoleWatch)
		rename := func(name string) {
			m, _ := w.ask(&wire.Open{Client: "c@x"}, &wire.Rename{Name: name})
			w.want("rename", m, &wire.Done{})
			synctest.Wait()
		}
		names := func(c *client) (names string) {
			c.gate.Lock()
			defer c.gate.Unlock()
			for _, n := range c.notices {
				if n.Code == wire.NoticeRenamed {
					names += n.Text + " "
				}
			}
			return names
		}
		rename("web")
		b.hangUp()
		synctest.Wait()
		rename("api")
		b.resume()
		c := w.attach("c@x")
		c.resume()
		synctest.Wait()
		for who, want := range map[*client]string{a: "web api ", b: "web api ", c: ""} {
			if got := names(who); got != want {
				t.Errorf("%s was told %q, want %q", who.name, got, want)
			}
		}
	})
}

// The writer is told of each watcher once, also if the watcher roams; and of those that are
// there when the writer comes, or comes back.
func TestWriterIsToldOfWatchers(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		b := w.attachAs("b@x", wire.RoleWatch)
		w.attachAs("peek@x", wire.RolePeek).leave()
		time.Sleep(time.Second)
		b.hangUp()
		time.Sleep(awayGrace / 2)
		b.resume()
		time.Sleep(time.Minute)
		told := func(c *client, want ...string) {
			t.Helper()
			if got := c.told(); !slices.Equal(got, want) {
				t.Errorf("%s was told %q, want %q", c.name, got, want)
			}
		}
		told(a, "+2 2 b@x")
		a.hangUp()
		a.resume()
		time.Sleep(time.Second)
		told(a, "+2 2 b@x", "+2 2 b@x")
		d := w.attach("d@x")
		time.Sleep(time.Second)
		told(d, "+2 2 b@x")
		b.hangUp()
		time.Sleep(2 * awayGrace)
		told(d, "+2 2 b@x", "-2 2 b@x")
		// What leaves while the writer is away, or its path is dead, is told when it is back.
		w.attachAs("e@x", wire.RoleWatch)
		f := w.attachAs("f@x", wire.RoleWatch)
		time.Sleep(time.Second)
		d.hangUp()
		f.leave()
		time.Sleep(time.Second)
		d.resume()
		time.Sleep(time.Second)
		told(d, "+2 2 b@x", "-2 2 b@x", "+5 2 e@x", "+6 2 f@x", "+5 2 e@x", "-2 2 b@x", "-6 2 f@x")
		if len(b.told()) > 0 {
			t.Errorf("the watcher was told %q", b.told())
		}
	})
}

// A guest whose carrier has not begun yet keeps its place, for as long as that may take.
func TestGuestThatBegins(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, MaxWatchers: 1}, func(w *world) {
		w.attach("a@x")
		ask := func() wire.Type {
			m, _, err := w.h.Handle(&wire.Open{}, mustEncode(t, &wire.Attach{PTY: true, Role: wire.RoleWatch}))
			if err != nil {
				t.Fatal(err)
			}
			return m.Type
		}
		if first, second := ask(), ask(); first != wire.TypeAttached || second != wire.TypeError {
			t.Errorf("answered with types %d and %d", first, second)
		}
		time.Sleep(awayGrace)
		if m := ask(); m != wire.TypeAttached {
			t.Errorf("answered with type %d, though the first has not begun in %v", m, awayGrace)
		}
	})
}

// A session has so many clients beside its writer. One that is away makes room for another, but not
// one that moves to another network.
func TestMaxWatchers(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, MaxWatchers: 3}, func(w *world) {
		w.attach("a@x")
		var first *client
		for i := range 3 {
			c := w.attachAs(fmt.Sprintf("watcher%d@x", i), wire.Role(i+1))
			if i == 0 {
				first = c
			}
		}
		refused := func(role wire.Role) {
			t.Helper()
			m, conn := w.ask(&wire.Open{Client: "b@x"}, &wire.Attach{PTY: true, Role: role, Instance: wire.InstanceID{1}})
			var e wire.Error
			if w.want("one more", m, &e); conn != nil || !strings.Contains(e.Text, "3 clients") {
				t.Errorf("told %+v", e)
			}
		}
		refused(wire.RoleShare)
		refused(wire.RoleWatch)
		refused(wire.RolePeek)
		first.hangUp()
		time.Sleep(awayGrace - time.Second)
		refused(wire.RoleWatch)
		first.resume()
		first.hangUp()
		time.Sleep(awayGrace)
		w.attachAs("instead@x", wire.RoleWatch)
		refused(wire.RoleWatch)
		if m, _ := w.ask(&wire.Open{}, first.statement()); m.Type != wire.TypeDenied {
			t.Errorf("the one that made room is answered with %d", m.Type)
		}
		w.attach("writer@x")
	})
}

// A restricted key can watch no more than it could attach to, and a command has no watchers.
func TestWhoMayWatch(t *testing.T) {
	refused := func(w *world, open *wire.Open, role wire.Role, reason string) {
		w.t.Helper()
		m, conn := w.ask(open, &wire.Attach{PTY: true, Role: role})
		var e wire.Error
		if w.want(reason, m, &e); conn != nil || !strings.Contains(e.Text, reason) {
			w.t.Errorf("role %d: told %+v, want %q", role, e, reason)
		}
	}
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		for _, role := range []wire.Role{wire.RoleShare, wire.RoleWatch, wire.RolePeek} {
			refused(w, &wire.Open{NoPTY: true}, role, "may not have a terminal")
			refused(w, &wire.Open{Scope: "another key"}, role, "no such session")
		}
		refused(w, &wire.Open{}, 4, "does not know role 4")
	})
	inBubble(t, wire.Launch{}, func(w *world) {
		for _, role := range []wire.Role{wire.RoleShare, wire.RoleWatch, wire.RolePeek} {
			refused(w, &wire.Open{}, role, "has no terminal")
		}
	})
}

// A watcher sees how the program has ended, before the session is over.
func TestWatcherSeesTheEnd(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a, b := w.attach("a@x"), w.attachAs("b@x", wire.RoleWatch)
		stopped, _ := w.joinIn("stopped@x", wire.RoleWatch)
		_ = stopped
		time.Sleep(time.Second)
		w.print(strings.Repeat("to the end ", 10000))
		w.program.End(3)
		if got := b.awaitExit(); got != 3 {
			t.Errorf("status %d", got)
		}
		start := time.Now()
		a.awaitEnd()
		if d := time.Since(start); d > 500*time.Millisecond {
			t.Errorf("the writer's carrier is closed after %v", d)
		}
		time.Sleep(exitGrace)
		if synctest.Wait(); !w.over() {
			t.Error("a stopped watcher keeps the session")
		}
	})
}

// Revoke takes their access from watchers too.
func TestRevokedWatcher(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a, b := w.attach("a@x"), w.attachAs("b@x", wire.RoleWatch)
		m, _ := w.ask(&wire.Open{Client: "c@x"}, &wire.Revoke{All: true})
		var revoked wire.Revoked
		if w.want("revoke", m, &revoked); revoked.Clients != 2 {
			t.Errorf("%d clients have lost access, want 2", revoked.Clients)
		}
		a.awaitEnd()
		b.awaitEnd()
		m, _ = w.ask(&wire.Open{}, b.statement())
		var e wire.Error
		if w.want("resume of a revoked watcher", m, &e); e.Code != wire.CodeWithdrawn {
			t.Errorf("told %+v", e)
		}
	})
}

// record attaches a client that records.
func (w *world) record(name string) (*client, carrier.Carrier) {
	w.t.Helper()
	w.instances++
	return w.joinWith(name, &wire.Attach{Instance: wire.InstanceID{0xfe, byte(w.instances)}, Role: wire.RoleWatch, Whole: true})
}

// A client that records and is far behind gets all output, without the program waiting, also after
// the program's end.
func TestSlowRecorder(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 16 << 20}, func(w *world) {
		a := w.attach("a@x")
		b, conn := w.record("b@x")
		all := lines(6 << 20)
		start := time.Now()
		w.printing(all)
		a.awaitOutput(all)
		if d := time.Since(start); d > stallLimit/2 {
			t.Errorf("the output took %v", d)
		}
		w.program.End(3)
		b.run(slow{conn}, true)
		b.awaitExit()
		if frames, _ := b.lost(); frames > 0 || b.output() != all {
			t.Errorf("%d frames are lost, %d bytes came, of %d", frames, len(b.output()), len(all))
		}
		b.awaitEnd()
	})
}

// Output is kept for a client that records and is away, but not for ever. One that falls behind
// further than the ring reaches is told of the gap.
func TestAwayRecorder(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 4 << 20}, func(w *world) {
		a := w.attach("a@x")
		b, conn := w.record("b@x")
		b.run(conn, true)
		w.print("seen")
		b.awaitOutput("seen")
		b.hangUp()
		all := lines(2 << 20)
		w.printing(all)
		a.awaitOutput(all)
		time.Sleep(recorderGrace / 2)
		b.resume()
		b.awaitOutput(all)
		if frames, _ := b.lost(); frames > 0 {
			t.Errorf("%d frames are lost", frames)
		}
		b.hangUp()
		w.printing(all)
		a.awaitOutput(all + all)
		time.Sleep(recorderGrace)
		w.print("more")
		a.awaitOutput("more")
		time.Sleep(time.Second) // for its ack
		w.locked(func(h *Holder) {
			if n := h.ring.Memory(); n > history+1<<20 {
				t.Errorf("the ring takes %d bytes then", n)
			}
		})
		b.resume()
		b.awaitOutput("more")
		if frames, _ := b.lost(); frames == 0 {
			t.Error("no gap is told")
		}
	})
}
