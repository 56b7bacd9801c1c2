//go:build linux || darwin

package holder

import (
	"fmt"
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

// enters sends what a program types, and returns the frame.
func (c *client) enters(e wire.Entry) (frame uint64) {
	c.send(wire.EntryFrame, string(e.Append(nil)))
	c.gate.Lock()
	defer c.gate.Unlock()
	return c.input.Next() - 1
}

// wantEntered checks the answer to a client's frame.
func (c *client) wantEntered(why string, want wire.Entered) {
	c.w.t.Helper()
	var got wire.Entered
	c.await(why, func() bool {
		for _, f := range c.frames {
			if f.Gap == nil && f.Type == wire.EnteredFrame {
				got, _ = wire.ParseEntered(f.Payload)
			}
			if got.Frame == want.Frame && got.Client == want.Client {
				return true
			}
		}
		return false
	})
	if want.Offset == 0 {
		got.Offset = 0
	}
	if got != want {
		c.w.t.Errorf("%s: told %+v, want %+v", why, got, want)
	}
}

// The program gets a secret only while its terminal reads a line that it does not show. The secret is in no log.
func TestSecret(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.program.SetProgress(true, true)
		w.attach("a@x")
		b := w.follow("b@x")
		for n, test := range []struct {
			modes wire.TerminalFlags
			gets  bool
		}{{ordinary, false}, {hidden, true}, {wire.Signals, false}, {wire.Shell | wire.Echo, false}, {hidden, true}} {
			w.program.SetModes(test.modes, 7)
			frame := b.enters(wire.Entry{ID: wire.EntryID{byte(n)}, Secret: true, Enter: true, Text: []byte("hunter2")})
			want := wire.Entered{Client: b.attached.Number, Frame: frame, Outcome: wire.NotSecret}
			if test.gets {
				w.wantInput("hunter2\r")
				want.Outcome = wire.Typed
			}
			b.wantEntered(fmt.Sprintf("%#x", test.modes), want)
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
		before := len(b.printedOf(wire.EnteredFrame))
		w.attachAs("c@x", wire.RoleWatch).send(wire.EntryFrame, string(entry("x")))
		time.Sleep(time.Second)
		if said := b.printedOf(wire.EnteredFrame)[before:]; said != "" {
			t.Errorf("a watcher is answered: %x", said)
		}
	})
}

// Two clients that are programs have turns: what one types is read before the other's is typed, which is told whom it
// has waited for. Who types by hand waits for none, and is told of once.
func TestTurns(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: usual}, func(w *world) {
		w.program.SetModes(ordinary, 7)
		person := w.attach("person@x")
		a, b := w.follow("a@x"), w.follow("b@x")
		first := a.enters(wire.Entry{ID: wire.EntryID{1}, Text: []byte("one"), Enter: true})
		w.wantInput("one\r")
		second := b.enters(wire.Entry{ID: wire.EntryID{2}, Text: []byte("two"), Enter: true})
		person.write("key")
		w.wantInput("key")
		person.write("another")
		w.wantInput("another")
		w.program.SetProgress(true, true)
		w.wantInput("two\r")
		b.wantEntered("two", wire.Entered{Client: b.attached.Number, Frame: second, Bytes: 4, After: "a@x"})
		typist := string(wire.Typist{Client: person.attached.Number, Name: "person@x"}.Append(nil))
		if got := b.printedOf(wire.TypistFrame); got != typist {
			t.Errorf("told of who has typed: %q, want %q", got, typist)
		}

		// a repeat types nothing, over another attachment too
		third := b.enters(wire.Entry{ID: wire.EntryID{1}, Text: []byte("one"), Enter: true})
		b.wantEntered("one again", wire.Entered{Client: b.attached.Number, Frame: third, Bytes: 4, Again: true})
		b.enters(wire.Entry{ID: wire.EntryID{3}, Keys: []byte("\x03")})
		w.wantInput("\x03")
		a.wantEntered("one", wire.Entered{Client: a.attached.Number, Frame: first, Bytes: 4})
		person.write("x")
		w.wantInput("x")
		c, _ := w.joinWith("c@x", &wire.Attach{
			Instance: wire.InstanceID{9}, PTY: true, Role: wire.RoleShare, Hints: wire.HintsProgram,
		})
		if got := c.attached.Typists; len(got) != 1 || got[0].Name != "person@x" {
			t.Errorf("who attaches is told that %v have typed", got)
		}
	})
}

func (c *client) printedOf(t buffer.Type) string {
	c.gate.Lock()
	defer c.gate.Unlock()
	return c.outputLocked(t)
}
