//go:build linux || darwin

package holder

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A slow carrier brings 1 MB a second.
type slow struct{ carrier.Carrier }

func (s slow) Read(b []byte) (int, error) {
	n, err := s.Carrier.Read(b)
	time.Sleep(time.Duration(n) * time.Microsecond)
	return n, err
}

// behind returns a client with more to get than is sent at once, over a carrier that
// it has not read yet.
func (w *world) behind(name string, all string) (*client, func()) {
	w.t.Helper()
	c, link := w.join(name)
	done := w.printing(all)
	for !done() {
		time.Sleep(time.Second)
	}
	return c, func() { c.run(slow{link}, true) }
}

// wantSkipped checks that a client has got some of what was printed, and was told
// exactly how much it has not.
func (c *client) wantSkipped(all string) {
	c.w.t.Helper()
	frames, bytes := c.lost()
	if n := len(c.output()); bytes < 1<<20 || int(bytes)+n != len(all) {
		c.w.t.Errorf("%d bytes received, %d frames with %d bytes skipped, of %d", n, frames, bytes, len(all))
	}
}

// Who is behind gets to the present when it asks for that: to what was printed last,
// with an exact gap.
func TestSkip(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, Buffer: 16 << 20}, func(w *world) {
		all := lines(3 << 20)
		a, run := w.behind("a@x", all)
		w.print("prompt$ ")
		a.send(session.Skip, "")
		run()
		a.awaitOutput("prompt$ ")
		a.wantSkipped(all + "prompt$ ")
		a.await("all to be consumed", func() bool { return a.peer.Consumed() == a.input.Next() })
		w.print("echo")
		a.awaitOutput("prompt$ echo")
	})
}

// Whoever asks for the present all the time gets no more than that: there is little
// memory in it, and the program waits again when that is over.
func TestSkipFlood(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, Buffer: 1 << 20}, func(w *world) {
		w.program.stubborn = true
		a := w.attach("a@x")
		size := session.Size{Cols: 80, Rows: 24}
		a.send(session.Resize, string(size.Append(nil)))
		w.log.clear()
		done := w.printing(lines(64 << 20))
		for range 1000 {
			for range 20 {
				a.send(session.Skip, "payload")
			}
			time.Sleep(time.Millisecond)
		}
		w.locked(func(h *Holder) {
			if n := h.ring.Memory(); n > 1<<20 {
				t.Errorf("the ring takes %d bytes", n)
			}
			if n := len(h.writer.queue); n > 100 {
				t.Errorf("%d frames of input wait", n)
			}
		})
		for !done() {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		if got := w.program.Size(); got != size {
			t.Errorf("the terminal has size %+v then, and had %+v", got, size)
		}
		w.locked(func(h *Holder) {
			if h.skipping != nil {
				t.Error("the client is still being brought to the present")
			}
		})
		if lines := w.log.lines(""); len(lines) > 0 {
			t.Errorf("logged %q", lines)
		}
		w.print("the end")
		a.awaitOutput("the end")
		a.hangUp()
		b, _ := w.join("b@x") // who reads nothing
		_ = b
		if w.printing(lines(8 << 20))() {
			t.Error("the program does not wait any more")
		}
	})
}

// Nothing of a command's output is left out.
func TestSkipOfPipe(t *testing.T) {
	inBubble(t, wire.Spec{Buffer: 1 << 20}, func(w *world) {
		a, link := w.join("a@x")
		all := lines(3 << 20)
		w.printing(all)
		for range 10 {
			a.send(session.Skip, "")
		}
		a.run(link, true)
		a.awaitOutput(all)
		a.send(session.Skip, "")
		w.program.end(3)
		if got := a.awaitExit(); got != 3 || a.output() != all {
			t.Errorf("status %d behind %d bytes, want 3 behind %d", got, len(a.output()), len(all))
		}
	})
}

// The end of the program is not left out, whatever comes behind it.
func TestSkipBehindExit(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true, Buffer: 16 << 20}, func(w *world) {
		all := lines(4 << 20)
		a, run := w.behind("a@x", all)
		w.program.status <- 4
		time.Sleep(time.Second)
		w.print(lines(1 << 20)) // by processes that were left behind
		a.send(session.Skip, "")
		run()
		exited := func(d session.Delivered) bool { return d.Lost == nil && d.Type == session.Exit && d.Payload[0] == 4 }
		a.await("the end of the program", func() bool { return slices.ContainsFunc(a.frames, exited) })
		if _, bytes := a.lost(); bytes < 1<<20 {
			t.Errorf("%d bytes were skipped, want most of 4 MiB", bytes)
		}
		a.awaitEnd()
		if !w.over() {
			t.Error("the session goes on after its end was seen")
		}
	})
}

// Who asks for the present and is displaced then leaves nothing out for others, and
// others can ask for it at once.
func TestSkipOfDisplaced(t *testing.T) {
	for _, asks := range []bool{false, true} {
		inBubble(t, wire.Spec{PTY: true, Buffer: 16 << 20}, func(w *world) {
			all := lines(3<<20) + "prompt$ "
			a, run := w.behind("a@x", all[:len(all)-8])
			w.print("prompt$ ")
			a.send(session.Skip, "")
			run()
			synctest.Wait() // asked, and not yet done
			w.locked(func(h *Holder) {
				if h.skipping == nil {
					t.Fatal("nobody is brought to the present")
				}
			})
			b, link := w.join("b@x")
			if asks {
				b.send(session.Skip, "")
			}
			a.send(session.Skip, "")
			b.run(slow{link}, true)
			b.awaitOutput("prompt$ ")
			if _, bytes := b.lost(); asks != (bytes > 0) {
				t.Errorf("%d bytes were skipped", bytes)
			}
			if !asks && !strings.HasSuffix(all, b.output()) {
				t.Errorf("%d bytes are not what was printed", len(b.output()))
			}
		})
	}
}

// Whoever asks for the present at the session's end harms nobody.
func TestSkipAtTheEnd(t *testing.T) {
	inBubble(t, wire.Spec{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		a.send(session.Skip, "")
		synctest.Wait()
		w.locked(func(h *Holder) { h.finishLocked("a test") })
		a.awaitEnd()
		time.Sleep(time.Second)
	})
	inBubble(t, wire.Spec{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		a.send(session.Skip, "")
		synctest.Wait()
		a.leave()
		a.awaitEnd()
		time.Sleep(time.Second)
		w.attach("b@x").hangUp()
	})
}
