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
