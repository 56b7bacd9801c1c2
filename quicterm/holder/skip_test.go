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

// behind returns a client that has more output to get than its path takes, over a carrier
// that it has not read yet. The function that it returns makes it read.
func (w *world) behind(name string, all string) (*client, func()) {
	w.t.Helper()
	c, conn := w.join(name)
	done := w.printing(all)
	for !done() {
		time.Sleep(time.Second)
	}
	return c, func() { c.run(slow{conn}, true) }
}

// wantSkipped checks that the client has received some of the output, and knows exactly
// how much it has not.
func (c *client) wantSkipped(all string) {
	c.w.t.Helper()
	frames, bytes := c.lost()
	if n := len(c.output()); bytes < 1<<20 || int(bytes)+n != len(all) {
		c.w.t.Errorf("%d bytes received, %d frames with %d bytes skipped, of %d", n, frames, bytes, len(all))
	}
}

// A client that is behind gets to what was printed last when it skips, with an exact gap.
func TestSkip(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 16 << 20}, func(w *world) {
		all := lines(3 << 20)
		a, run := w.behind("a@x", all)
		w.print("prompt$ ")
		a.send(wire.Skip, "")
		run()
		a.awaitOutput("prompt$ ")
		a.wantSkipped(all + "prompt$ ")
		a.await("all to be consumed", func() bool { return a.endpoint.Consumed() == a.input.Next() })
		w.print("echo")
		a.awaitOutput("prompt$ echo")
	})
}

// The prompt is not skipped when one frame holds it and more than is kept: a shell does
// not print it again.
func TestSkipKeepsPrompt(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 16 << 20}, func(w *world) {
		all := lines(3 << 20)
		a, run := w.behind("a@x", all)
		w.print(strings.Repeat("x", 3*skipKeep) + "prompt$ ")
		a.send(wire.Skip, "")
		run()
		a.awaitOutput("prompt$ ")
	})
}

// A client for which a flood is skipped is skipped again when it gets there, also if the program has fallen silent.
func TestSkipSilentFlood(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 16 << 20}, func(w *world) {
		a, conn := w.joinWith("a@x", &wire.Attach{
			Instance: wire.InstanceID{1}, PTY: true, Size: wire.Size{Cols: 80, Rows: 24}, Skip: true,
		})
		all := lines(3 << 20)
		for done := w.printing(all); !done(); {
			time.Sleep(time.Second)
		}
		a.run(slow{conn}, true)
		time.Sleep(time.Minute)
		if n := len(a.output()); n > 1<<20 {
			t.Errorf("%d bytes of %d are sent to a client that is far behind", n, len(all))
		}
	})
}

// A client that skips all the time gets no more than that: little memory is used, and the
// program waits again when it stops.
func TestSkipFlood(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 1 << 20}, func(w *world) {
		w.program.IgnoreSignals()
		a := w.attach("a@x")
		size := wire.Size{Cols: 80, Rows: 24}
		a.send(wire.Resize, string(size.Append(nil)))
		w.log.clear()
		done := w.printing(lines(32 << 20))
		for range 1000 {
			for range 20 {
				a.send(wire.Skip, "payload")
			}
			time.Sleep(time.Millisecond)
		}
		w.locked(func(h *Holder) {
			if n := h.ring.Memory(); n > 1<<20 {
				t.Errorf("the ring takes %d bytes", n)
			}
			if n := h.clients.writer().endpoint.Pending(); n > 100 {
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
			if h.clients.writer().skipping {
				t.Error("the client still skips")
			}
		})
		if lines := w.log.lines(""); len(lines) > 0 {
			t.Errorf("logged %q", lines)
		}
		w.print("the end")
		a.awaitOutput("the end")
		a.hangUp()
		b, _ := w.join("b@x") // which reads nothing
		_ = b
		if w.printing(lines(8 << 20))() {
			t.Error("the program does not wait any more")
		}
	})
}

// Nothing of a command's output is skipped.
func TestSkipOfPipe(t *testing.T) {
	inBubble(t, wire.Launch{Buffer: 1 << 20}, func(w *world) {
		a, conn := w.join("a@x")
		all := lines(3 << 20)
		w.printing(all)
		for range 10 {
			a.send(wire.Skip, "")
		}
		a.run(conn, true)
		a.awaitOutput(all)
		a.send(wire.Skip, "")
		w.program.End(3)
		if got := a.awaitExit(); got != 3 || a.output() != all {
			t.Errorf("status %d behind %d bytes, want 3 behind %d", got, len(a.output()), len(all))
		}
	})
}

// The Exit frame is not skipped, whatever comes behind it.
func TestSkipBehindExit(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 16 << 20}, func(w *world) {
		all := lines(4 << 20)
		a, run := w.behind("a@x", all)
		w.program.Exit(4)
		time.Sleep(time.Second)
		w.print(lines(1 << 20)) // by processes that were left behind
		a.send(wire.Skip, "")
		run()
		exited := func(d session.Delivered) bool { return d.Gap == nil && d.Type == wire.Exit && d.Payload[0] == 4 }
		a.await("the end of the program", func() bool { return slices.ContainsFunc(a.frames, exited) })
		if _, bytes := a.lost(); bytes < 1<<20 {
			t.Errorf("%d bytes were skipped, want most of 4 MiB", bytes)
		}
		a.awaitEnd()
		if !w.over() {
			t.Error("the session continues after its end was seen")
		}
	})
}

// A client that skips and is then displaced skips nothing for the next one, which can skip
// at once.
func TestSkipOfDisplaced(t *testing.T) {
	for _, asks := range []bool{false, true} {
		inBubble(t, wire.Launch{PTY: true, Buffer: 16 << 20}, func(w *world) {
			all := lines(3<<20) + "prompt$ "
			a, run := w.behind("a@x", all[:len(all)-8])
			w.print("prompt$ ")
			a.send(wire.Skip, "")
			run()
			synctest.Wait() // asked, and not yet done
			w.locked(func(h *Holder) {
				if !h.clients.writer().skipping {
					t.Fatal("the client does not skip")
				}
			})
			b, conn := w.join("b@x")
			if asks {
				b.send(wire.Skip, "")
			}
			a.send(wire.Skip, "")
			b.run(slow{conn}, true)
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

// A skip at the end of a session does no harm.
func TestSkipAtTheEnd(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		a.send(wire.Skip, "")
		w.locked(func(h *Holder) { h.finishLocked("a test") })
		a.awaitEnd()
		time.Sleep(time.Second)
	})
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		a.send(wire.Skip, "")
		a.leave()
		a.awaitEnd()
		time.Sleep(time.Second)
		w.attach("b@x").hangUp()
	})
}
