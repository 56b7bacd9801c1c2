//go:build linux || darwin

package holder

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// follow makes a client beside the writer that is told what the program does with its input.
func (w *world) follow(name string) *client {
	w.t.Helper()
	w.instances++
	c, conn := w.joinWith(name, &wire.Attach{Instance: wire.InstanceID{0xfd, 0, byte(w.instances)}, PTY: true,
		Role: wire.RoleShare, Hints: wire.HintsProgram, Replay: wire.Replay{Kind: wire.ReplayNone}})
	c.run(conn, true)
	return c
}

// A client that is a program is told that the program has taken its input and waits for more, and that it does not
// wait, soon after each change and before anything else has happened.
func TestProgress(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.program.SetModes(ordinary, 7)
		w.attach("a@x")
		w.program.SetProgress(true, true)
		w.print("$ ") // frame 3, behind the sizes
		out := uint64(3)
		w.locked(func(h *Holder) { out = h.ring.Next() - 1 })
		a, b := w.follow("a@x"), w.follow("b@x")
		reads := wire.Hint{Out: out, Terminal: ordinary, Context: 7, Reading: true}
		a.wantHint("the prompt", reads)

		w.program.SetProgress(false, true)
		key := a.typed("ls\n")
		w.read()
		time.Sleep(progressInterval)
		working := wire.Hint{Out: out, Terminal: ordinary, Context: 7}
		a.wantHint("not taken", working)
		b.wantHint("not taken from another client", working)
		w.program.SetProgress(true, false)
		time.Sleep(4 * progressInterval)
		working.In, working.Taken = key, key
		a.wantHint("taken", working)
		w.print("file\n")
		w.program.SetProgress(true, true)
		working.Out++
		a.wantHint("its output", working)
		time.Sleep(progressInterval)
		working.Reading = true
		a.wantHint("the next prompt", working)
		working.In, working.Taken = 0, 0
		b.wantHint("the next prompt for another client", working)
		w.print("from the background")
		working.Out, working.Reading = working.Out+1, false
		b.wantHint("output", working)
		w.program.Starve(true)
		time.Sleep(10 * progressInterval)
		b.wantHint("output that is not read", working)
	})
}

// What was told is told again, because the ack may be lost, and not for ever. Nobody else is told more, and when the
// client is gone nothing is looked up.
func TestProgressIsToldAgain(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.program.SetModes(ordinary, 7)
		other := w.attachHinted("a@x", wire.RoleWriter)
		time.Sleep(time.Minute)
		_, quietly := other.hint()
		c := w.follow("b@x")
		time.Sleep(time.Minute + progressInterval/2) // between two looks
		_, before := c.hint()
		w.program.SetProgress(true, true)
		time.Sleep(progressInterval)
		synctest.Wait()
		if _, n := c.hint(); n != before+1 {
			t.Errorf("%d acks for a change", n-before)
		}
		time.Sleep(time.Second)
		if _, n := c.hint(); n != before+7 {
			t.Errorf("%d acks within a second", n-before)
		}
		time.Sleep(time.Minute)
		if _, n := c.hint(); n != before+7 {
			t.Errorf("%d acks in the end", n-before)
		}
		if _, n := other.hint(); n != quietly {
			t.Errorf("%d acks for the other client", n-quietly)
		}
		c.hangUp()
		time.Sleep(time.Second)
		w.locked(func(h *Holder) {
			if !h.hints.progress.at.IsZero() {
				t.Error("it still looks")
			}
		})
	})
}

// A real shell takes a line, works and waits again. No state is told before the line was read.
func TestProgressOfShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip(err)
	}
	launch := shell(t, true, "")
	launch.Path, launch.Argv = bash, []string{"-bash", "--norc", "--noprofile"}
	launch.Env = append(launch.Env, "PS1=ready: ", "TERM=xterm")
	w := running(t, launch)
	w.attach("a@x")
	c := w.follow("b@x")
	waits := func(key uint64) func(wire.Hint) bool {
		return func(h wire.Hint) bool { return h.Reading && h.Taken >= key && h.Terminal&wire.Shell != 0 }
	}
	await := func(why string, ok func(wire.Hint) bool) wire.Hint {
		t.Helper()
		var hint wire.Hint
		w.await(why, func() bool { hint, _ = c.hint(); return ok(hint) }) // it asks for none
		return hint
	}
	await("the prompt", waits(0))
	for range 10 {
		before := len(c.output())
		key := c.typed("echo one; sleep 0.1; echo two\n")
		hint := await("the next prompt", waits(key))
		c.await("its output", func() bool { return c.endpoint.Consumed() > key && c.nextOutput() > hint.Out })
		if out := c.output()[before:]; !strings.Contains(out, "\ntwo\r\n") || !strings.HasSuffix(out, "ready: ") {
			t.Fatalf("it waits behind %q", out)
		}
	}
	key := c.typed("read -s secret\n")
	await("a secret", func(h wire.Hint) bool {
		return h.Reading && h.Taken >= key && h.Terminal.Secret() && h.Terminal&wire.Shell != 0
	})
}

// nextOutput returns the frame of output to come. The gate is locked.
func (c *client) nextOutput() uint64 {
	next, _ := c.endpoint.Next()
	return next
}
