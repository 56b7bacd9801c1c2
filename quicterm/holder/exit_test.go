//go:build linux || darwin

package holder

import (
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// The Exit frame is behind all output. On a terminal, it is behind the output before a
// short silence.
func TestExitBehindOutput(t *testing.T) {
	t.Run("terminal", func(t *testing.T) {
		inBubble(t, wire.Launch{PTY: true}, func(w *world) {
			a := w.attach("a@x")
			w.program.Exit(5)
			for range 3 { // by children that still have the terminal
				time.Sleep(quietTime * 3 / 4)
				w.print("late\n")
			}
			start := time.Now()
			if got := a.awaitExit(); got != 5 {
				t.Errorf("status %d, want 5", got)
			}
			if d := time.Since(start); d < quietTime || d > 2*quietTime {
				t.Errorf("the end came %v after the last output, want %v", d, quietTime)
			}
			if a.output() != "late\nlate\nlate\n" {
				t.Errorf("output %q", a.output())
			}
		})
	})
	t.Run("terminal that is never silent", func(t *testing.T) {
		inBubble(t, wire.Launch{PTY: true}, func(w *world) {
			a := w.attach("a@x")
			w.program.Exit(5)
			start := time.Now()
			w.wg.Go(func() {
				for range 1000 {
					time.Sleep(quietTime / 3)
					w.program.Out.Write([]byte("still here\n"))
				}
			})
			if got := a.awaitExit(); got != 5 {
				t.Errorf("status %d, want 5", got)
			}
			if d := time.Since(start); d < maxDrain || d > maxDrain+2*quietTime {
				t.Errorf("the end came after %v, want %v", d, maxDrain)
			}
			w.program.End(5)
		})
	})
	t.Run("terminal that waits for its client", func(t *testing.T) {
		inBubble(t, wire.Launch{PTY: true, Buffer: 16 << 20}, func(w *world) {
			c, conn := w.join("a@x")
			all := lines(3 << 20)
			w.printing(all)
			w.program.Exit(5)
			time.Sleep(stallLimit / 2)
			c.run(conn, true)
			if got := c.awaitExit(); got != 5 || c.output() != all {
				t.Errorf("status %d behind %d bytes, want 5 behind %d", got, len(c.output()), len(all))
			}
		})
	})
	t.Run("pipe", func(t *testing.T) {
		inBubble(t, wire.Launch{Buffer: 1 << 20, PipeTTL: 10 * time.Hour}, func(w *world) {
			a := w.attach("a@x")
			w.program.Exit(5)
			w.print("out ")
			time.Sleep(time.Hour) // a child in the background holds the pipe
			w.print("late")
			w.program.Err.Write([]byte("errors"))
			w.program.Out.Close()
			time.Sleep(time.Hour)
			w.program.Err.Close()
			if got := a.awaitExit(); got != 5 || a.output() != "out late" || a.outputLocked(wire.Stderr) != "errors" {
				t.Errorf("status %d behind %q and %q", got, a.output(), a.outputLocked(wire.Stderr))
			}
			var ends []byte
			for _, d := range a.frames {
				if d.Type == wire.EOF {
					ends = append(ends, d.Payload...)
				}
			}
			if string(ends) != "\x01\x02" {
				t.Errorf("ends of streams %v, want both, in their order", ends)
			}
		})
	})
}

// A session whose end no client has seen is kept for ExitedTTL.
func TestExitedTTL(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, ExitedTTL: 3 * time.Hour}, func(w *world) {
		w.attach("a@x").hangUp()
		time.Sleep(100 * time.Hour)
		w.wantPhase("before the end", wire.PhaseDetached, 100*time.Hour)
		w.program.End(4)
		time.Sleep(3*time.Hour - time.Nanosecond)
		if synctest.Wait(); w.over() {
			t.Fatal("over before ExitedTTL")
		}
		if _, info := w.state(); info.Phase != wire.PhaseExited || info.Status != 4 {
			t.Errorf("%+v, want exited with 4", info)
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !w.over() {
			t.Error("not over after ExitedTTL")
		}
	})
}

// If a client comes to see the end, the session is over then.
func TestExitSeenLater(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.print("last words")
		w.program.End(4)
		time.Sleep(23 * time.Hour)
		a := w.attach("a@x")
		if got := a.awaitExit(); got != 4 || a.output() != "last words" {
			t.Errorf("status %d behind %q", got, a.output())
		}
		a.awaitEnd()
		if !w.over() {
			t.Error("the session continues after its end was seen")
		}
		m, _ := w.ask(&wire.Open{Client: "b@x"}, &wire.Attach{PTY: true})
		var e wire.Error
		if w.want("attach after the end", m, &e); !strings.Contains(e.Text, "is over") {
			t.Errorf("told %+v", e)
		}
	})
}

// Output after the Exit frame, from processes that were left behind, neither keeps the
// session nor pushes the frame out.
func TestOutputBehindExit(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Buffer: 1 << 20}, func(w *world) {
		w.program.Exit(4)
		time.Sleep(time.Second)
		w.print(lines(3 << 20))
		a, conn := w.join("a@x")
		a.holds = true
		a.run(conn, true)
		a.await("the first frames", func() bool { return len(a.frames) > 1 })
		a.gate.Lock()
		if d := a.frames[0]; d.Gap != nil || d.Type != wire.Exit || d.Payload[0] != 4 {
			t.Errorf("begins with %+v, want the end of the program", d)
		}
		a.endpoint.Consume(time.Now(), a.frames[0])
		a.driver.Wake()
		a.gate.Unlock()
		time.Sleep(time.Second)
		if !w.over() {
			t.Error("the session continues after its end was seen")
		}
	})
}

// When the client of a command leaves after its end, no other client could see it: the
// session is over.
func TestPipeLeftAfterExit(t *testing.T) {
	inBubble(t, wire.Launch{}, func(w *world) {
		a, conn := w.join("a@x")
		a.holds = true
		a.run(conn, true)
		w.program.End(0)
		a.awaitExit()
		if w.over() {
			t.Fatal("over before its end was seen")
		}
		a.leave()
		if !w.over() {
			t.Error("a session that no client can see continues")
		}
	})
}

// A client is told which signal killed the program, unless the client or its user sent the
// signal.
func TestClientIsToldSignal(t *testing.T) {
	send := func(name string) func(*client) { return func(a *client) { a.send(wire.Signal, name) } }
	tests := []struct {
		why    string
		pty    bool
		end    func(a *client)
		reason string
	}{
		{"a fault", true, func(a *client) { a.w.program.Signal(syscall.SIGSEGV) }, "killed by SIGSEGV"},
		{"another user's kill", true, func(a *client) { a.w.program.Signal(syscall.SIGTERM) }, "killed by SIGTERM"},
		{"^C of a pipe that was not typed", false, func(a *client) { a.w.program.Signal(syscall.SIGINT) }, "killed by SIGINT"},
		{"^C on a terminal", true, func(a *client) { a.w.program.Signal(syscall.SIGINT) }, ""},
		{"the client's signal", true, send("TERM"), ""},
		{"the client's hangup", true, send("HUP"), ""},
		{"the client's reader is gone", false, func(a *client) {
			a.send(wire.Closed, "\x01")
			a.w.program.Signal(syscall.SIGPIPE)
		}, ""},
		{"its own exit", true, func(a *client) { a.w.program.End(130) }, ""},
	}
	for _, test := range tests {
		inBubble(t, wire.Launch{PTY: test.pty}, func(w *world) {
			a := w.attach("a@x")
			at := time.Now()
			test.end(a)
			exit := a.awaitExitStatus()
			if exit.Reason != test.reason || (exit.Reason != "" && !exit.At.Equal(at)) {
				t.Errorf("%s: told %+v, want %q at %v", test.why, exit, test.reason, at)
			}
		})
	}
}

// Nothing of a session happens after Run has returned: no size, no signal.
func TestNothingOutlivesRun(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.program.IgnoreSignals()
		w.attach("a@x")
		b := w.attach("b@x") // displaces a, and the terminal has another size for a moment
		b.send(wire.Skip, "")
		w.locked(func(h *Holder) { h.killLocked("killed", "killer@x") }) // SIGKILL follows
		w.end()
		size, signals := w.program.Size(), w.program.Signals()
		time.Sleep(time.Hour)
		if w.program.Size() != size || len(w.program.Signals()) != len(signals) {
			t.Errorf("size %+v and signals %v when Run has returned, %+v and %v later", size, signals, w.program.Size(), w.program.Signals())
		}
	})
}

// A client that is a program may see the end, and the session stays for the next one that asks, until a person has
// seen it.
func TestExitSeenByProgram(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		first := w.follow("a@x")
		w.program.Exit(5)
		for _, c := range []*client{first, w.follow("b@x")} {
			if got := c.awaitExit(); got != 5 {
				t.Errorf("status %d, want 5", got)
			}
			time.Sleep(2 * exitGrace)
			if synctest.Wait(); w.over() {
				t.Fatal("the session is over")
			}
		}
		w.attach("c@x").awaitExit()
		time.Sleep(2 * exitGrace)
		if synctest.Wait(); !w.over() {
			t.Error("the session is not over")
		}
	})
}
