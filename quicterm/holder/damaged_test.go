//go:build linux || darwin

package holder

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// damage changes a bit of a frame in the ring, as bad memory does.
func (w *world) damage(find func(h *Holder) (seq uint64)) {
	w.locked(func(h *Holder) {
		b, _ := h.ring.Slice(find(h), 1)
		b[len(b)-5] ^= 1
	})
}

// A client that comes back is told of a gap in place of output that memory has changed, and gets the rest.
func TestDamagedOutput(t *testing.T) {
	last := func(h *Holder) uint64 { return h.ring.Next() - 1 }
	for why, test := range map[string]struct {
		launch wire.Launch
		replay wire.ReplayKind
	}{
		"raw":    {wire.Launch{PTY: true}, wire.ReplayRaw},
		"screen": {wire.Launch{PTY: true, Size: wire.Size{Cols: 80, Rows: 24}}, wire.ReplayScreen},
		"pipe":   {wire.Launch{}, wire.ReplayRaw},
	} {
		t.Run(why, func(t *testing.T) {
			inBubble(t, test.launch, func(w *world) {
				w.timeout = time.Hour
				a, conn := w.joinWith("a@x", &wire.Attach{
					Instance: wire.InstanceID{1}, PTY: test.launch.PTY, Size: wire.Size{Cols: 80, Rows: 24},
					Replay: wire.Replay{Kind: test.replay},
				})
				a.run(conn, true)
				w.print("before")
				a.awaitOutput("before")
				a.hangUp()
				w.print("changed")
				w.damage(last)
				w.print("behind")
				w.program.End(3)
				synctest.Wait()
				w.damage(func(h *Holder) uint64 { return h.life.exitSeq })
				for tries := 0; tries < 3 && !w.over(); tries++ { // a carrier ends at the program's end, which has changed
					a.resume()
					time.Sleep(time.Second)
				}
				if status := a.awaitExit(); status != 3 {
					t.Errorf("status %d, want 3", status)
				}
				if test.replay == wire.ReplayScreen {
					a.awaitShown("behind")
				}
				if out := a.output(); strings.Contains(out, "changed") || test.replay == wire.ReplayRaw && out != "beforebehind" {
					t.Errorf("output %q", out)
				}
			})
		})
	}
}
