//go:build linux || darwin

package holder

import (
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A program that does not read its input bounds what its client sends, and does not hold
// up resizes and signals.
func TestProgramThatDoesNotRead(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.program.IgnoreSignals()
		a := w.attach("a@x")
		for range 3 << 20 / 4096 {
			a.write(strings.Repeat("x", 4096))
		}
		time.Sleep(time.Minute)
		w.locked(func(h *Holder) {
			if held := 4096 * h.clients.writer().endpoint.Pending(); held > inputWindow {
				t.Errorf("%d bytes of input wait, more than %d", held, inputWindow)
			}
		})
		a.gate.Lock()
		sent := a.endpoint.Acked()
		a.gate.Unlock()
		if sent > inputWindow/4096+1 || sent < inputWindow/4096/2 {
			t.Errorf("%d frames were taken", sent)
		}
		go io.Copy(io.Discard, w.program.In)
		a.send(wire.Resize, string(wire.Size{Cols: 100, Rows: 50}.Append(nil)))
		a.send(wire.Signal, "INT")
		a.await("all input to be read", func() bool { return a.endpoint.Consumed() == a.input.Next() })
		if w.program.Size() != (wire.Size{Cols: 100, Rows: 50}) || !slices.Equal(w.program.Signals(), []syscall.Signal{syscall.SIGINT}) {
			t.Errorf("size %+v, signals %v", w.program.Size(), w.program.Signals())
		}
	})
}

// Resize and Signal do not wait until the input before them is read.
func TestUrgent(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.program.IgnoreSignals()
		a := w.attach("a@x")
		a.write("not read\n")
		a.send(wire.Signal, "INT")
		a.send(wire.Resize, string(wire.Size{Cols: 100, Rows: 50}.Append(nil)))
		if w.program.Size() != (wire.Size{Cols: 100, Rows: 50}) || !slices.Equal(w.program.Signals(), []syscall.Signal{syscall.SIGINT}) {
			t.Errorf("size %+v, signals %v", w.program.Size(), w.program.Signals())
		}
	})
}

// A program that does not read its input learns that its output has no reader: by a frame
// behind the input, and by a notice if the window is full.
func TestReaderGone(t *testing.T) {
	frame := func(c *client, s wire.Stream) { c.send(wire.Closed, string(rune(s))) }
	notice := func(c *client, s wire.Stream) {
		c.gate.Lock()
		defer c.gate.Unlock()
		c.endpoint.Notify(wire.NoticeReaderGone, string(rune(s)))
		c.driver.Wake()
	}
	tests := []struct {
		why   string
		input int
		say   func(*client, wire.Stream)
	}{
		{"frame", 1000, frame},
		{"notice", 3 << 20, notice},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			inBubble(t, wire.Launch{}, func(w *world) {
				a := w.attach("a@x")
				for range test.input / 1000 {
					a.write(strings.Repeat("x", 1000))
				}
				synctest.Wait()
				test.say(a, wire.StreamStdout)
				test.say(a, wire.Stream(9)) // which there is not
				a.resume()                  // brings notices once more
				time.Sleep(time.Second)
				if _, err := w.program.Out.Write([]byte("x")); err == nil {
					t.Error("the program can print without a reader")
				}
				w.wg.Go(func() { w.program.Err.Write([]byte("error")) })
				a.await("its other output", func() bool { return a.outputLocked(wire.Stderr) == "error" })
			})
		})
	}
}

// The program gets a secret only while its terminal reads a line that it does not show. Else the log says so, and
// names the client. The secret is in no log.
func TestSecret(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.attach("a@x")
		b := w.follow("b@x")
		for _, test := range []struct {
			modes wire.TerminalFlags
			gets  bool
		}{{ordinary, false}, {hidden, true}, {wire.Signals, false}, {wire.Shell | wire.Echo, false}, {hidden, true}} {
			w.program.SetModes(test.modes, 7)
			var refused wire.Refusal
			before := len(b.printedOf(wire.Refused))
			b.send(wire.Secret, "hunter2\n")
			frame := b.input.Next() - 1
			if test.gets {
				got := make([]byte, 100)
				if n, err := w.program.In.Read(got); err != nil || string(got[:n]) != "hunter2\n" {
					t.Errorf("%#x: the program was given %q, %v", test.modes, got[:n], err)
				}
			}
			time.Sleep(time.Second)
			said := b.printedOf(wire.Refused)[before:]
			if want := (wire.Refusal{Client: b.attached.Number, Frame: frame}); !test.gets {
				if refused, _ = wire.ParseRefusal([]byte(said)); refused != want {
					t.Errorf("%#x: told %+v, want %+v", test.modes, refused, want)
				}
			} else if said != "" {
				t.Errorf("%#x: told %x", test.modes, said)
			}
		}
		b.await("that all is consumed", func() bool { return b.endpoint.Consumed() == b.input.Next() })
		var log string
		w.locked(func(h *Holder) {
			for seq := h.ring.First(); seq < h.ring.Next(); {
				var frames []byte
				frames, seq = h.ring.Slice(seq, 1<<20)
				log += string(frames)
			}
		})
		if strings.Contains(log, "hunter") || len(w.log.lines("hunter")) > 0 {
			t.Error("the secret was logged")
		}
		w.program.SetModes(ordinary, 7)
		before := len(b.printedOf(wire.Refused))
		w.attachAs("c@x", wire.RoleWatch).send(wire.Secret, "hunter2\n")
		time.Sleep(time.Second)
		if said := b.printedOf(wire.Refused)[before:]; said != "" {
			t.Errorf("a watcher is answered: %x", said)
		}
	})
}

// A pipe has no secrets.
func TestSecretWithoutTerminal(t *testing.T) {
	inBubble(t, wire.Launch{}, func(w *world) {
		a := w.attach("a@x")
		a.send(wire.Secret, "hunter2")
		time.Sleep(time.Second)
		if said := a.printedOf(wire.Refused); len(said) != 16 {
			t.Errorf("told %x", said)
		}
	})
}

func (c *client) printedOf(t buffer.Type) string {
	c.gate.Lock()
	defer c.gate.Unlock()
	return c.outputLocked(t)
}
