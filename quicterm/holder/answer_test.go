//go:build linux || darwin

package holder

import (
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// What a program asks its terminal is answered while no person's terminal is there, which answers itself, and once, also
// if the output is drawn again after a fault of the screen.
func TestQueries(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: wire.Size{Cols: 80, Rows: 24}}, func(w *world) {
		given := make(chan string, 9)
		w.wg.Go(func() {
			b := make([]byte, 100)
			for {
				n, err := w.program.In.Read(b)
				if err != nil {
					return
				}
				given <- string(b[:n])
			}
		})
		asks := func(query, want string) {
			t.Helper()
			w.print(query)
			time.Sleep(time.Second)
			select {
			case got := <-given:
				if got != want {
					t.Errorf("%q is answered with %q, want %q", query, got, want)
				}
			default:
				if want != "" {
					t.Errorf("%q is not answered", query)
				}
			}
		}
		asks("text\x1b[6n", "\x1b[1;5R")
		w.follow("a program")
		w.locked(func(h *Holder) { h.emulator.drawFailedLocked(h.emulator.next, nil) })
		asks("\x1b[c", "\x1b[?62;22c")
		a := w.attach("a@x")
		asks("\x1b[6n", "")
		a.hangUp()
		time.Sleep(2 * awayGrace)
		asks("\x1b[5n", "\x1b[0n")
	})
}
