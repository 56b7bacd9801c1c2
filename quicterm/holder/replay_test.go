//go:build linux || darwin

package holder

import (
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// shown returns the output that a new client shows: without the bytes to leave out.
func (c *client) shown() string { return c.output()[c.attached.Trim:] }

// goAway closes the client's carriers after it has acknowledged everything.
func (c *client) goAway() {
	c.w.t.Helper()
	time.Sleep(time.Second)
	c.hangUp()
}

// A new client is sent what was last on the screen, from a line's start, and all output
// that no client has seen.
func TestReplay(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 8 << 20}, func(w *world) {
		all := lines(700 << 10)
		a := w.attach("a@x")
		if a := a.attached; !a.Created || a.First != 1 || a.Live != 1 || a.Trim != 0 {
			t.Errorf("the first client: %+v", a)
		}
		w.print(all)
		a.awaitOutput(all)
		a.goAway()
		unseen := strings.ToUpper(lines(100 << 10))
		w.print(unseen)

		var next uint64
		w.locked(func(h *Holder) { next = h.ring.Next() })
		b := w.attach("b@x")
		b.awaitOutput(unseen)
		seen, found := strings.CutSuffix(b.shown(), unseen)
		if !found || !strings.HasSuffix(all, "\n"+seen) {
			t.Errorf("shown is not the end of the output, from a line's start: it begins with %.50q", b.shown())
		}
		if n := len(b.output()); n > history+maxRead || n < history-maxRead {
			t.Errorf("sent %d bytes again, want about %d", n, history)
		}
		if a := b.attached; a.Created || a.First == 1 || a.Live != next || a.Trim == 0 || a.Trim > 100 {
			t.Errorf("the second client: %+v", a)
		}
		if s := w.program.Size(); s.Rows != 24 {
			t.Errorf("%d rows, want what the client has", s.Rows)
		}
	})
}

// A line that is longer than the history has no start to replay from.
func TestReplayWithoutLines(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 8 << 20}, func(w *world) {
		a := w.attach("a@x")
		all := strings.Repeat("no end ", 100_000)
		w.print(all)
		a.awaitOutput(all)
		a.goAway()
		w.print("unseen")
		b := w.attach("b@x")
		b.awaitOutput("unseen")
		if b.shown() != "unseen" {
			t.Errorf("%d bytes that begin within a line", len(b.shown()))
		}
	})
}

// Output that no client has seen is sent, however long it is.
func TestReplayUnseen(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 8 << 20}, func(w *world) {
		w.attach("a@x").hangUp()
		all := lines(3 << 20)
		w.print(all)
		b := w.attach("b@x")
		b.awaitOutput(all)
		if b.shown() != all {
			t.Errorf("%d bytes, want the %d that no client has seen", len(b.shown()), len(all))
		}
	})
}

// A client that names an offset gets the output from that byte on, over changes of the size, or is told where else
// its output begins.
func TestReplayFrom(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 8 << 20}, func(w *world) {
		a := w.attach("a@x")
		w.print("one two")
		a.send(wire.Resize, string(wire.Size{Cols: 100, Rows: 30}.Append(nil)))
		w.print("three")
		from := func(offset uint64, role wire.Role, whole bool) *client {
			w.instances++
			c, conn := w.joinWith("b@x", &wire.Attach{PTY: true, Instance: wire.InstanceID{0xfe, byte(w.instances)},
				Role: role, Whole: whole, Replay: wire.Replay{Kind: wire.ReplayFrom, From: offset}})
			c.run(conn, true)
			return c
		}
		var first, resized, three, end, live uint64
		w.locked(func(h *Holder) {
			first, resized, three = h.ring.Offset(2), h.ring.Offset(3), h.ring.Offset(4)
			end, live = h.ring.Offset(h.ring.Next()), h.ring.Next()
		})
		if end != three+5 {
			t.Fatalf("offsets %d, %d, %d, %d", first, resized, three, end)
		}
		for _, test := range []struct {
			why           string
			from          uint64
			begins, frame uint64
			shown         string
		}{
			{"all", 1, 0, 1, "one twothree"},
			{"output", first, first, 2, "one twothree"},
			{"within a frame", first + 4, first + 4, 2, "twothree"},
			{"a size", resized, resized, 3, "three"},
			{"within a size", resized + 1, resized, 3, "three"},
			{"the last byte", end - 1, end - 1, 4, "e"},
			{"the end", end, end, 5, ""},
			{"beyond it", end + 1000, end, 5, ""},
		} {
			for _, role := range []wire.Role{wire.RoleShare, wire.RoleWatch} {
				for _, whole := range []bool{false, true} {
					c := from(test.from, role, whole)
					if a := c.attached; a.Offset+a.Trim != test.begins || a.First != test.frame || a.Live != live {
						t.Errorf("%s, %v: %+v; want it to begin at %d, frame %d", test.why, role, a, test.begins, test.frame)
					}
					if got := c.shown(); got != test.shown {
						t.Errorf("%s, %v: shown %q, want %q", test.why, role, got, test.shown)
					}
					c.leave()
				}
			}
		}

		all := lines(2 << 20)
		w.print(all)
		a.awaitOutput(all)
		a.goAway() // the ring keeps the history alone
		c := from(first, wire.RoleWatch, true)
		c.awaitOutput(all[len(all)-100:])
		begins := c.attached.Offset + c.attached.Trim
		if lost := begins - end; begins <= end || c.shown() != all[lost:] {
			t.Errorf("begins at %d, shown %d bytes of %d", begins, len(c.shown()), len(all))
		}
	})
}

// A client that goes on where another one has stopped does not make unseen output seen that is before that.
func TestReplayFromLeavesUnseen(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 8 << 20}, func(w *world) {
		w.attach("a@x").goAway()
		w.print("unseen ")
		c, conn := w.joinWith("b@x", &wire.Attach{PTY: true, Instance: wire.InstanceID{0xfe}, Role: wire.RoleShare,
			Replay: wire.Replay{Kind: wire.ReplayFrom, From: 1 << 40}})
		c.run(conn, true)
		w.print("seen")
		c.awaitOutput("seen")
		c.leave()
		if shown := w.attach("a@x").shown(); shown != "unseen seen" {
			t.Errorf("the next writer is shown %q", shown)
		}
	})
}

// Who comes when the program has ended gets its end.
func TestReplayFromAfterExit(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.attach("a@x").goAway()
		w.program.End(3)
		time.Sleep(time.Minute)
		c, conn := w.joinWith("b@x", &wire.Attach{PTY: true, Instance: wire.InstanceID{0xfe}, Role: wire.RoleShare,
			Replay: wire.Replay{Kind: wire.ReplayFrom, From: 1 << 40}})
		c.run(conn, true)
		if status := c.awaitExit(); status != 3 {
			t.Errorf("status %d", status)
		}
	})
}
