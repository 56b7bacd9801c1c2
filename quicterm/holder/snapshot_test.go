//go:build linux || darwin

package holder

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// wantingScreen returns the request of a client in a role that takes snapshots, at first with
// lines of scrollback.
func (w *world) wantingScreen(role wire.Role, lines uint32) *wire.Attach {
	w.instances++
	return &wire.Attach{
		Instance: wire.InstanceID{0xff, byte(w.instances >> 8), byte(w.instances)},
		PTY:      true,
		Size:     usual,
		Role:     role,
		Replay:   wire.Replay{Kind: wire.ReplayScreen, Lines: lines},
	}
}

// attachWith is attach with a request.
func (w *world) attachWith(name string, req *wire.Attach) *client {
	w.t.Helper()
	c, conn := w.joinWith(name, req)
	c.run(conn, true)
	return c
}

// wantScreen checks the last snapshot, and that it came before all output.
func (c *client) wantScreen(why, want string) {
	c.w.t.Helper()
	c.await("a snapshot", func() bool { return len(c.screens) > 0 })
	c.gate.Lock()
	defer c.gate.Unlock()
	s := c.screens[len(c.screens)-1]
	if got := shownBy(s); got != want {
		c.w.t.Errorf("%s: the snapshot shows %q, want %q", why, got, want)
	}
	if c.frames[0].Gap == nil {
		c.w.t.Errorf("%s: begins with %+v", why, c.frames[0])
	}
}

// A client that attaches gets the screen as it is, whatever the ring has lost, and then what is
// live.
func TestAttachGetsScreen(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 1 << 20}, func(w *world) {
		w.attach("a@x").hangUp()
		w.print(lines(5<<20) + "\x1b[2J\x1b[3;4Hedit")
		b := w.attachWith("b@x", w.wantingScreen(wire.RoleWriter, 1000))
		if a := b.attached; a.First != 1 || a.Offset != 0 || a.Created || a.Size != usual {
			t.Errorf("attached %+v", a)
		}
		if a := b.attached; a.Unseen < 100_000 || a.Unseen > 300_000 {
			t.Errorf("%d lines are told that nobody has seen, of %d", a.Unseen, strings.Count(lines(5<<20), "\n"))
		}
		b.wantScreen("attach", "\n\n   edit")
		w.print("or")
		b.awaitOutput("or")
		b.gate.Lock()
		if next := b.frames[0].After(); next != b.attached.Live {
			t.Errorf("live from frame %d, and the snapshot ends before %d", b.attached.Live, next)
		}
		b.gate.Unlock()
		if b.output() != "or" || len(b.screens) != 1 {
			t.Errorf("got %q and %d snapshots", b.output(), len(b.screens))
		}
		time.Sleep(time.Second) // until that is acknowledged
		c := w.attachWith("c@x", w.wantingScreen(wire.RoleWriter, 0))
		c.wantScreen("another attach", "\n\n   editor")
		if c.attached.Unseen != b.attached.Unseen {
			t.Errorf("%d lines are told that nobody has seen, want still %d", c.attached.Unseen, b.attached.Unseen)
		}
		time.Sleep(time.Second)
		d := w.attach("d@x") // raw
		d.awaitOutput("editor")
		if n := len(d.output()); n < 1<<19 {
			t.Errorf("%d bytes of the rest are left", n)
		}
		time.Sleep(time.Second)
		if e := w.attachWith("e@x", w.wantingScreen(wire.RoleWriter, 0)); e.attached.Unseen != 0 {
			t.Errorf("%d lines are told that nobody has seen, after all were", e.attached.Unseen)
		}
	})
}

// A new session has nothing to show but its output.
func TestNewSessionSendsOutput(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.print("$ ")
		a := w.attachWith("a@x", w.wantingScreen(wire.RoleWriter, 1000))
		a.awaitOutput("$ ")
		if a.attached.Live != 1 || len(a.screens) > 0 {
			t.Errorf("attached %+v, %d snapshots", a.attached, len(a.screens))
		}
	})
}

// Scrollback comes as far as it was asked for.
func TestScrollbackOfSnapshot(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.attach("a@x")
		w.print(lines(100 << 10))
		for _, n := range []uint32{0, 1, 500, 1000, 1 << 31} {
			c := w.attachWith("c@x", w.wantingScreen(wire.RoleWatch, n))
			c.await("a snapshot", func() bool { return len(c.screens) > 0 })
			terminal := screen.New(80, 24, screen.Limits{})
			terminal.Write(c.screens[0].Screen)
			if got, want := terminal.Lines(), int(min(n, 1000)); got != want {
				t.Errorf("%d lines, want %d", got, want)
			}
		}
	})
}

// Nothing of the output from before comes if the client wants none.
func TestReplayNone(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.attach("a@x")
		w.print("before ")
		req := w.wantingScreen(wire.RoleWriter, 0)
		req.Replay.Kind = wire.ReplayNone
		b := w.attachWith("b@x", req)
		w.print("behind")
		b.awaitOutput("behind")
		if b.output() != "behind" || len(b.frames) != 1 {
			t.Errorf("got %+v", b.frames)
		}
	})
}

// The writer's size takes effect before its snapshot is made.
func TestSnapshotHasSizeOfWriter(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.attach("a@x")
		w.print("0123456789abcdef\r\n")
		req := w.wantingScreen(wire.RoleWriter, 0)
		req.Size = wire.Size{Cols: 10, Rows: 5}
		b := w.attachWith("b@x", req)
		b.wantScreen("a small terminal", "0123456789\nabcdef")
		if got := b.screens[0].Sizing.Size; got != req.Size || w.program.Size() != req.Size || b.attached.Size != req.Size {
			t.Errorf("the snapshot has size %v, the terminal %v, Attached %v", got, w.program.Size(), b.attached.Size)
		}
	})
}

// A client that attaches in the middle of a flood gets a screen soon, and from there on all
// that follows.
func TestAttachInFlood(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 8 << 20}, func(w *world) {
		w.attach("a@x")
		all := lines(16 << 20)
		done := w.printing(all)
		for i, role := range []wire.Role{wire.RoleShare, wire.RoleWatch} {
			b := w.attachWith(fmt.Sprintf("b%d@x", i), w.wantingScreen(role, 1000))
			b.await("a snapshot", func() bool { return len(b.screens) > 0 })
		}
		b := w.attachWith("b@x", w.wantingScreen(wire.RoleWriter, 1000))
		b.await("a snapshot", func() bool { return len(b.screens) > 0 })
		for !done() {
			time.Sleep(time.Second)
		}
		w.print("the end")
		b.awaitOutput("the end")
		if !strings.HasSuffix(all+"the end", b.output()) {
			t.Errorf("%d bytes are not the end of the output", len(b.output()))
		}
	})
}

// A client that was away while the ring overflowed gets a snapshot with scrollback when it is
// back.
func TestOverflowWhileAway(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 1 << 20}, func(w *world) {
		a := w.attachWith("a@x", w.wantingScreen(wire.RoleWriter, 100))
		w.print("seen ")
		a.awaitOutput("seen ")
		time.Sleep(time.Second)
		a.hangUp()
		all := lines(5 << 20)
		w.print(all + "\x1b[2J\x1b[Hthe screen")
		w.drawn() // else the snapshot is of before
		a.resume()
		a.await("a snapshot", func() bool { return len(a.screens) > 0 })
		if got := shownBy(a.screens[0]); got != "the screen" {
			t.Errorf("the snapshot shows %q", got)
		}
		if _, lost := a.lost(); lost < 5<<20 {
			t.Errorf("told of %d lost bytes", lost)
		}
		w.print(" on")
		a.awaitOutput(" on")
	})
}

// A snapshot that a carrier has brought in part is worth nothing: the next one brings another.
func TestResumeInSnapshot(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.attach("a@x")
		w.print(lines(200 << 10))
		b, conn := w.joinWith("b@x", w.wantingScreen(wire.RoleWatch, 1000))
		b.run(&cutOff{conn, 20 << 10}, true)
		b.awaitEnd()
		if len(b.screens) > 0 {
			t.Fatal("the first carrier has brought a snapshot")
		}
		w.print("\x1b[2J\x1b[Hlater")
		w.drawn()
		b.resume()
		b.wantScreen("another carrier", "later")
	})
}

// cutOff is a carrier that ends after some bytes.
type cutOff struct {
	carrier.Carrier
	after int
}

func (c *cutOff) Read(b []byte) (int, error) {
	if c.after <= 0 {
		c.Close()
	}
	n, err := c.Carrier.Read(b[:min(len(b), 1<<10)])
	c.after -= n
	return n, err
}

// A client that skips gets the screen.
func TestSkipGetsScreen(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 16 << 20}, func(w *world) {
		a, conn := w.joinWith("a@x", w.wantingScreen(wire.RoleWriter, 1000))
		done := w.printing(lines(3<<20) + "\x1b[2J\x1b[Hprompt$ ")
		for !done() {
			time.Sleep(time.Second)
		}
		a.send(wire.Skip, "")
		a.run(slow{conn}, true)
		a.awaitShown("prompt$")
		w.print("echo")
		a.awaitOutput("echo")
	})
}

// The program does not wait for a client that skips in a flood, and the client sees how it ends.
func TestFloodIsSkipped(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 8 << 20}, func(w *world) {
		req := w.wantingScreen(wire.RoleWriter, 1000)
		req.Skip = true
		a, conn := w.joinWith("a@x", req)
		a.run(slow{conn}, true) // 1 MB/s
		start := time.Now()
		done := w.printing(lines(30<<20) + "\x1b[2J\x1b[Hthe end")
		for !done() {
			time.Sleep(10 * time.Millisecond)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("the program waited %v", d)
		}
		a.awaitShown("the end")
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("the end came after %v", d)
		}
		w.program.End(3)
		if got := a.awaitExit(); got != 3 {
			t.Errorf("status %d", got)
		}
	})
}

// Fifty watchers, one of which reads nothing, see how a flood ends, and neither slow the
// writer nor take much memory.
func TestFloodWithWatchers(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 8 << 20}, func(w *world) {
		a := w.attachWith("a@x", w.wantingScreen(wire.RoleWriter, 1000))
		var watchers []*client
		for i := range 49 {
			watchers = append(watchers, w.attachWith(fmt.Sprintf("w%d@x", i), w.wantingScreen(wire.RoleWatch, 0)))
		}
		w.joinWith("stopped@x", w.wantingScreen(wire.RoleWatch, 0))
		all := lines(20<<20) + "\x1b[2J\x1b[Hthe end"
		start := time.Now()
		done := w.printing(all)
		most := 0
		for !done() {
			time.Sleep(10 * time.Millisecond)
			w.locked(func(h *Holder) { most = max(most, h.ring.Memory()) })
		}
		a.awaitOutput(all)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("the output took %v", d)
		}
		if limit := 5 << 20; most > limit {
			t.Errorf("the ring took %d bytes, want at most %d", most, limit)
		}
		received := 0
		for _, c := range watchers {
			c.await("the end", func() bool {
				return len(c.screens) > 0 && strings.HasPrefix(shownBy(c.screens[len(c.screens)-1]), "the end") ||
					strings.HasSuffix(string(c.printed[wire.Stdout]), "the end")
			})
			received += len(c.output())
		}
		t.Logf("the watchers were sent %d bytes of %d", received, len(all))
	})
}

// A screen that fails when a snapshot is made is drawn again.
func TestSnapshotFails(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.attach("a@x")
		w.print("text")
		failed := false
		w.failSnapshot(&failed)
		b := w.attachWith("b@x", w.wantingScreen(wire.RoleWatch, 0))
		b.wantScreen("after a fault", "text")
		if !failed || len(w.log.lines("failed", "no snapshot")) != 1 {
			t.Errorf("failed: %v, logged %q", failed, w.log.lines("failed"))
		}
	})
}

// The same after the program's end.
func TestSnapshotFailsAfterTheEnd(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.attach("a@x").goAway()
		w.print("text")
		w.program.End(0)
		w.drawn()
		failed := false
		w.failSnapshot(&failed)
		b := w.attachWith("b@x", w.wantingScreen(wire.RoleWatch, 0))
		b.wantScreen("after a fault", "text")
		if !failed {
			t.Error("no snapshot has failed")
		}
	})
}

// A client whose screen is too large for a snapshot is told what is missing, and not shown an
// empty screen.
func TestScreenTooLarge(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.attach("a@x")
		w.print("text")
		w.drawn()
		w.locked(func(h *Holder) {
			h.emulator.snapshot = func(*screen.Screen, screen.Snapshot) []byte { return nil }
		})
		b := w.attachWith("b@x", w.wantingScreen(wire.RoleWatch, 0))
		synctest.Wait() // else the gap may have more too
		w.print("more")
		b.awaitOutput("more")
		if _, lost := b.lost(); lost < uint64(len("text")) || len(b.screens) > 0 {
			t.Errorf("told of %d lost bytes, shown %d screens", lost, len(b.screens))
		}
	})
}

// failSnapshot makes the next snapshot fail.
func (w *world) failSnapshot(failed *bool) {
	w.locked(func(h *Holder) {
		h.emulator.snapshot = func(s *screen.Screen, o screen.Snapshot) []byte {
			if !*failed {
				*failed = true
				panic("no snapshot")
			}
			return s.Snapshot(o)
		}
	})
}

// Lines that were seen, or that the snapshot shows, are not told as unseen.
func TestUnseenLines(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 8 << 20}, func(w *world) {
		a := w.attach("a@x")
		w.print(strings.Repeat("seen\r\n", 5000))
		a.awaitOutput("seen")
		a.goAway()
		unseen := func(why string, lines uint32, want uint64) {
			t.Helper()
			c := w.attachWith("c@x", w.wantingScreen(wire.RoleWatch, lines))
			if got := c.attached.Unseen; got != want {
				t.Errorf("%s: %d lines are told as unseen, want %d", why, got, want)
			}
			c.leave()
		}
		unseen("all seen", 0, 0)
		w.print(strings.Repeat("unseen\r\n", 500))
		unseen("all shown", 1000, 0)
		unseen("some are not shown", 100, 376)
		w.print("\x1b[?1049h" + strings.Repeat("unseen\r\n", 5000) + "\x1b[?1049l")
		unseen("a full-screen program", 100, 376)
	})
}
