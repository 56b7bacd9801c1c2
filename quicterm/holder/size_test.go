//go:build linux || darwin

package holder

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// The log of a terminal begins with its size, and has each other size in its place.
func TestSizesInLog(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: wire.Size{Cols: 80, Rows: 24}}, func(w *world) {
		a := w.attach("a@x")
		w.print("small ")
		wide := wire.Size{Cols: 132, Rows: 24}
		for range 3 {
			a.send(wire.Resize, string(wide.Append(nil)))
		}
		synctest.Wait()
		w.print("wide")
		a.awaitOutput("small wide")
		if want := []wire.Size{{Cols: 80, Rows: 24}, wide}; !slices.Equal(a.sizes, want) {
			t.Errorf("sizes %v, want %v", a.sizes, want)
		}
		if got := w.program.Size(); got != wide {
			t.Errorf("the terminal has size %v", got)
		}
	})
}

// The log of a command has no sizes.
func TestNoSizesOfPipe(t *testing.T) {
	inBubble(t, wire.Launch{}, func(w *world) {
		a := w.attach("a@x")
		size := wire.Size{Cols: 80, Rows: 24}
		a.send(wire.Resize, string(size.Append(nil)))
		w.print("output")
		a.awaitOutput("output")
		if len(a.sizes) > 0 {
			t.Errorf("sizes %v", a.sizes)
		}
	})
}
