//go:build linux || darwin

package holder

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/sizing"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// TestOwnership runs stories of writers on virtual time: who owns the size after each event.
func TestOwnership(t *testing.T) {
	type event struct {
		at     time.Duration
		what   string // attach, share, own (a share that takes the size), resize, take, leave, away, silent, back, or nothing
		number uint64
		cols   uint16 // of the client's terminal
		owner  uint64 // afterwards
		size   uint16 // afterwards
	}
	for why, story := range map[string][]event{
		"a sharer does not take the size, nor does its resize": {
			{0, "attach", 1, 80, 1, 80}, {1, "share", 2, 120, 1, 80}, {2, "resize", 2, 130, 1, 80}, {3, "resize", 1, 90, 1, 90},
		},
		"a sharer takes the size by asking for it": {
			{0, "attach", 1, 80, 1, 80}, {1, "share", 2, 120, 1, 80}, {2, "take", 2, 120, 2, 120},
			{3, "resize", 1, 70, 2, 120}, {4, "resize", 2, 60, 2, 60}, {5, "take", 1, 70, 1, 70},
		},
		"an attach with the size of its own": {
			{0, "attach", 1, 80, 1, 80}, {1, "own", 2, 120, 2, 120}, {2, "resize", 1, 81, 2, 120},
		},
		"the owner leaves": {
			{0, "attach", 1, 80, 1, 80}, {1, "share", 2, 120, 1, 80}, {2, "share", 3, 100, 1, 80},
			{3, "leave", 1, 0, 3, 100}, {4, "leave", 3, 0, 2, 120}, {5, "leave", 2, 0, 2, 120}, {6, "share", 4, 77, 4, 77},
		},
		"the owner gives the size back": {
			{0, "attach", 1, 80, 1, 80}, {1, "share", 2, 120, 1, 80}, {2, "share", 3, 0, 1, 80}, {3, "take", 3, 45, 3, 45},
			{4, "resize", 3, 50, 3, 50}, {5, "resize", 3, 0, 1, 80}, {6, "resize", 3, 45, 1, 80}, {7, "leave", 1, 0, 3, 45},
			{8, "resize", 3, 0, 2, 120},
		},
		"the owner leaves with the size of another one": {
			{0, "attach", 1, 80, 1, 80}, {1, "share", 2, 120, 1, 80}, {2, "share", 3, 0, 1, 80}, {3, "take", 3, 45, 3, 45},
			{4, "leave", 3, 0, 1, 80},
		},
		"the owner gives the size to nobody, and takes it again": {
			{0, "attach", 1, 80, 1, 80}, {1, "share", 2, 0, 1, 80}, {2, "take", 2, 45, 2, 45}, {3, "leave", 1, 0, 2, 45},
			{4, "resize", 2, 0, 2, 45}, {5, "resize", 2, 50, 2, 50}, {6, "resize", 2, 0, 2, 50}, {7, "share", 3, 90, 3, 90},
		},
		"the owner is away for a moment": {
			{0, "attach", 1, 80, 1, 80}, {1, "share", 2, 120, 1, 80},
			{10 * time.Second, "away", 1, 0, 1, 80}, {14900 * time.Millisecond, "", 0, 0, 1, 80}, {14950 * time.Millisecond, "back", 1, 0, 1, 80},
			{time.Minute, "", 0, 0, 1, 80},
		},
		"the owner is away for long, and asks when it is back": {
			{0, "attach", 1, 80, 1, 80}, {1, "share", 2, 120, 1, 80},
			{10 * time.Second, "away", 1, 0, 1, 80}, {15 * time.Second, "", 0, 0, 2, 120}, {20 * time.Second, "back", 1, 0, 2, 120},
			{21 * time.Second, "resize", 1, 90, 2, 120}, {22 * time.Second, "take", 1, 90, 1, 90},
		},
		"the owner leaves a program behind, which has no size": {
			{0, "attach", 1, 80, 1, 80}, {1, "share", 2, 0, 1, 80}, {2, "leave", 1, 0, 1, 80}, {time.Hour, "", 0, 0, 1, 80},
			{time.Hour, "share", 3, 120, 3, 120},
		},
		"the owner has vanished": {
			{0, "attach", 1, 80, 1, 80}, {1, "share", 2, 120, 1, 80}, {2, "share", 3, 100, 1, 80}, {3, "silent", 3, 0, 1, 80},
			{10 * time.Second, "silent", 1, 0, 1, 80}, {12 * time.Second, "", 0, 0, 1, 80}, {15 * time.Second, "", 0, 0, 2, 120},
		},
		"the owner is away alone": {
			{0, "attach", 1, 80, 1, 80}, {1, "away", 1, 0, 1, 80}, {time.Hour, "", 0, 0, 1, 80},
			{time.Hour, "share", 2, 120, 2, 120},
		},
		"all are away, and the other one is back first": {
			{0, "attach", 1, 80, 1, 80}, {1, "share", 2, 120, 1, 80}, {2, "away", 2, 0, 1, 80}, {3, "away", 1, 0, 1, 80},
			{time.Minute, "", 0, 0, 1, 80}, {time.Minute, "back", 2, 0, 1, 80}, {61 * time.Second, "back", 1, 0, 1, 80},
			{time.Hour, "", 0, 0, 1, 80},
		},
		"all are away, and only the other one is back": {
			{0, "attach", 1, 80, 1, 80}, {1, "share", 2, 120, 1, 80}, {2, "away", 2, 0, 1, 80}, {3, "away", 1, 0, 1, 80},
			{time.Minute, "back", 2, 0, 1, 80}, {64 * time.Second, "", 0, 0, 1, 80}, {65 * time.Second, "", 0, 0, 2, 120},
			{66 * time.Second, "back", 1, 0, 2, 120},
		},
		"all are away, and a new one comes": {
			{0, "attach", 1, 80, 1, 80}, {1, "away", 1, 0, 1, 80}, {time.Minute, "share", 2, 120, 2, 120},
		},
	} {
		var o sizing.Ownership
		var writers []sizing.Writer
		now := time.Now()
		for i, e := range story {
			at := now.Add(e.at)
			w := func() *sizing.Writer {
				for i := range writers {
					if writers[i].Number == e.number {
						return &writers[i]
					}
				}
				return nil
			}()
			switch e.what {
			case "attach", "share", "own":
				writers = append(writers, sizing.Writer{
					Number: e.number, Size: wire.Size{Cols: e.cols, Rows: e.cols}, Connected: true,
				})
				if e.what != "share" {
					o.Take(e.number)
				}
			case "take", "resize":
				w.Size = wire.Size{Cols: e.cols, Rows: e.cols}
				if e.what == "take" {
					o.Take(e.number)
				}
			case "away":
				w.Connected, w.Away = false, at
			case "silent": // its carrier is still there
				w.Away = at
			case "back":
				w.Connected, w.Away, w.Back = true, time.Time{}, at
			case "leave":
				kept := writers[:0]
				for _, w := range writers {
					if w.Number != e.number {
						kept = append(kept, w)
					}
				}
				writers = kept
			}
			var again time.Time
			if o, again = o.Settle(at, writers); !again.IsZero() && !again.After(at) {
				t.Errorf("%s, event %d: settled again in the past", why, i)
			}
			if o.Owner != e.owner || o.Size.Cols != e.size {
				t.Errorf("%s, event %d: %d owns %d columns, want %d and %d", why, i, o.Owner, o.Size.Cols, e.owner, e.size)
			}
		}
	}
}

// The size in the log names its owner. A client whose terminal does not give the size gets the screen anew
// when that changes.
func TestSizeIsToldAndTaken(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		a := w.attachWith("a@x", w.wantingScreen(wire.RoleWriter, 0))
		wide := wire.Size{Cols: 120, Rows: 40}
		req := w.wantingScreen(wire.RoleShare, 0)
		req.Size = wide
		b := w.attachWith("b@x", req)
		if b.attached.Number == b.attached.Owner || b.attached.Owner != a.attached.Number || b.attached.Size != usual {
			t.Errorf("attached %+v", b.attached)
		}
		w.print("some text")
		b.awaitOutput("some text")
		b.send(wire.Resize, string(wire.Size{Cols: 130, Rows: 40}.Append(nil)))
		synctest.Wait()
		if got := w.program.Size(); got != usual {
			t.Errorf("a sharer's resize makes the size %v", got)
		}
		screens := len(a.screens)
		b.send(wire.Take, string(wide.Append(nil)))
		w.await("the screen for the owner before", func() bool { return len(a.screens) > screens })
		got := a.screens[screens]
		if want := (wire.Sizing{Size: wide, Owner: b.attached.Number, Client: "b@x"}); got.Sizing != want || shownBy(got) != "some text" {
			t.Errorf("it has got %+v, %q", got.Sizing, shownBy(got))
		}
		if got := w.program.Size(); got != wide {
			t.Errorf("taken, the size is %v", got)
		}
		// The owner is away: after a while the size is the other's.
		b.hangUp()
		time.Sleep(sizing.Grace - time.Millisecond)
		if got := w.program.Size(); got != wide {
			t.Errorf("away for a moment, the size is %v", got)
		}
		time.Sleep(time.Second)
		if got := w.program.Size(); got != usual {
			t.Errorf("away for long, the size is %v", got)
		}
		synctest.Wait() // until it is told
		if got := a.screens[len(a.screens)-1].Sizing; got.Client != "a@x" || got.Owner != a.attached.Number {
			t.Errorf("it is told that the owner is %+v", got)
		}
		b.resume()
		time.Sleep(time.Second)
		if got := w.program.Size(); got != usual {
			t.Errorf("the owner from before is back, and the size is %v", got)
		}
	})
}

// The owner has vanished, and its carrier is still there: the size goes to the one that is heard, if there is
// output to show.
func TestSizeOfVanished(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		a, conn := w.joinWith("a@x", w.wantingScreen(wire.RoleWriter, 0))
		defer conn.Close()
		_ = a
		req := w.wantingScreen(wire.RoleShare, 0)
		req.Size = wire.Size{Cols: 120, Rows: 40}
		b := w.attachWith("b@x", req)
		w.print("output")
		b.awaitOutput("output")
		time.Sleep(sizing.Grace - time.Second)
		if got := w.program.Size(); got != usual {
			t.Errorf("at once, the size is %v", got)
		}
		time.Sleep(2 * time.Second)
		if got := w.program.Size(); got != req.Size {
			t.Errorf("the size is %v, want that of the one that is there", got)
		}
	})
}

// A visit in another size, in which the program prints nothing, leaves screen and scrollback as they were.
func TestVisitLeavesScreen(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 8 << 20}, func(w *world) {
		a := w.attachWith("a@x", w.wantingScreen(wire.RoleWriter, 0))
		w.print(lines(200<<10) + "\x1b[31m" + strings.Repeat("a long line ", 30) + "\r\n$ \x1b[32m" + strings.Repeat("prompt ", 20))
		a.awaitOutput("prompt ")
		contents := func() (s string) {
			w.settle()
			time.Sleep(time.Second)
			w.locked(func(h *Holder) {
				shown := screen.New(80, 24, screen.Limits{})
				shown.Write(h.emulator.screen.Snapshot(screen.Snapshot{Lines: 1000}))
				s = fmt.Sprint(shown.Lines(), shown.Dump())
			})
			return s
		}
		before := contents()
		for _, size := range []wire.Size{{Cols: 30, Rows: 10}, {Cols: 120, Rows: 40}} {
			req := w.wantingScreen(wire.RoleShare, 0)
			req.Size, req.Own = size, true
			b := w.attachWith("b@x", req)
			synctest.Wait()
			if got := w.program.Size(); got != size || contents() == before {
				t.Errorf("the size is %v", got)
			}
			b.leave()
			b.awaitEnd()
			if got := w.program.Size(); got != usual {
				t.Errorf("after the visit, the size is %v", got)
			}
			if contents() != before {
				t.Errorf("a visit of %dx%d has changed the screen", size.Cols, size.Rows)
			}
		}
	})
}
