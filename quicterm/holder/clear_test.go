//go:build linux || darwin

package holder

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// clear asks for Clear.
func (w *world) clear(open *wire.Open) (cleared wire.Cleared) {
	w.t.Helper()
	m, _ := w.ask(open, &wire.Clear{})
	w.want("clear", m, &cleared)
	return cleared
}

// What clients have had is forgotten, and the scrollback; the screen stays.
func TestClearHistory(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		a := w.attach("a@x")
		w.print(strings.Repeat("secret\r\n", 5000) + "\x1b[2J\x1b[Hthe screen")
		a.awaitOutput("the screen")
		time.Sleep(time.Second)
		if c := w.clear(&wire.Open{}); c.Bytes < 40_000 || c.Lines != 1000 || c.Kept != 0 {
			t.Errorf("cleared %+v", c)
		}
		if c := w.clear(&wire.Open{}); c != (wire.Cleared{}) {
			t.Errorf("cleared %+v when all was", c)
		}
		b := w.attachWith("b@x", w.wantingScreen(wire.RoleWatch, 1000))
		b.wantScreen("then", "the screen")
		if strings.Contains(string(b.screens[0].Screen), "secret") || b.attached.Unseen != 0 {
			t.Errorf("the scrollback is still there, or %d lines are told as unseen", b.attached.Unseen)
		}
		c := w.attach("c@x") // raw
		w.print("on")
		c.awaitOutput("on")
		if c.output() != "on" {
			t.Errorf("%d bytes are sent again", len(c.output()))
		}
	})
}

// What has happened is forgotten too: a title has a command line.
func TestClearEvents(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.attach("a@x")
		w.print("\x1b]2;make SECRET=x\a")
		time.Sleep(time.Minute)
		w.clear(&wire.Open{})
		b := w.reader(1)
		w.print("\a")
		time.Sleep(time.Minute)
		if list := fmt.Sprint(b.happened()); strings.Contains(list, "SECRET") || !strings.Contains(list, "bell") {
			t.Errorf("%s has happened", list)
		}
	})
}

// What no client has had is kept, and so is what a client is about to get.
func TestClearKeepsUnseen(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		a := w.attach("a@x")
		w.print("seen ")
		a.awaitOutput("seen ")
		time.Sleep(time.Second)
		a.hangUp()
		w.print("unseen")
		size := uint64(len(wire.Sizing{}.Append(nil)))
		if c := w.clear(&wire.Open{}); c.Bytes != 5+size || c.Kept != 6 {
			t.Errorf("cleared %+v", c)
		}
		a.resume()
		a.awaitOutput("seen unseen")
	})
}

// Lines that a screen has left out at an attach are forgotten too.
func TestClearForgetsHiddenLines(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 8 << 20}, func(w *world) {
		w.print(strings.Repeat("secret\r\n", 5000))
		w.attach("a@x").leave()
		time.Sleep(time.Second)
		w.print(strings.Repeat("secret\r\n", 5000))
		b := w.attachWith("b@x", w.wantingScreen(wire.RoleWriter, 10))
		b.await("the screen", func() bool { return len(b.screens) > 0 })
		time.Sleep(time.Second)
		if c := w.clear(&wire.Open{}); b.attached.Unseen < 4000 || c.Bytes < 35_000 || c.Kept != 0 {
			t.Errorf("%d lines unseen, cleared %+v", b.attached.Unseen, c)
		}
	})
}

func TestClearOfOthers(t *testing.T) {
	refused := func(w *world, open *wire.Open, reason string) {
		w.t.Helper()
		m, _ := w.ask(open, &wire.Clear{})
		var e wire.Error
		if w.want(reason, m, &e); !strings.Contains(e.Text, reason) {
			w.t.Errorf("told %+v, want %q", e, reason)
		}
	}
	inBubble(t, wire.Launch{PTY: true, Scope: "mine"}, func(w *world) {
		refused(w, &wire.Open{Scope: "other"}, "no such session")
	})
	inBubble(t, wire.Launch{}, func(w *world) { refused(w, &wire.Open{}, "has no terminal") })
}

// History can be cleared in the middle of a flood.
func TestClearInFlood(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual, Buffer: 8 << 20}, func(w *world) {
		a := w.attach("a@x")
		all := lines(12 << 20)
		done := w.printing(all)
		for range 3 {
			if c := w.clear(&wire.Open{}); c.Kept > 9<<20 {
				t.Errorf("cleared %+v", c)
			}
		}
		a.awaitOutput(all)
		if !done() {
			t.Error("the program waits")
		}
	})
}
