//go:build linux || darwin

package holder

import (
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	ordinary = wire.Canonical | wire.Echo | wire.EchoErase | wire.EchoControl | wire.Signals | wire.Extended | wire.UsualKeys
	hidden   = ordinary &^ wire.Echo
)

// attachHinted makes a client in a role that wants hints.
func (w *world) attachHinted(name string, r wire.Role) *client {
	w.t.Helper()
	w.instances++
	c, conn := w.joinWith(name, &wire.Attach{Instance: wire.InstanceID{0xff, 0, byte(w.instances)}, PTY: true,
		Size: wire.Size{Cols: 80, Rows: 24}, Role: r, Hints: wire.HintsPredict})
	c.run(conn, true)
	return c
}

// wantHint checks the last hint that has come by now.
func (c *client) wantHint(why string, want wire.Hint) {
	c.w.t.Helper()
	synctest.Wait()
	if got, _ := c.hint(); got != want {
		c.w.t.Errorf("%s: the last hint is %+v, want %+v", why, got, want)
	}
}

// askHint asks for a hint.
func (c *client) askHint() {
	c.gate.Lock()
	defer c.gate.Unlock()
	c.endpoint.AskAck()
	c.driver.Wake()
}

// awaitHint asks for hints until one is as it should be: on a busy machine a program may start
// later than the holder looks.
func (c *client) awaitHint(what string, ok func(wire.Hint) bool) {
	c.w.t.Helper()
	c.w.await(what, func() bool {
		c.askHint()
		time.Sleep(20 * time.Millisecond)
		newest, acks := c.hint()
		return acks > 0 && ok(newest)
	})
}

// typed types a key, and returns the frame that has it.
func (c *client) typed(key string) uint64 {
	c.write(key)
	c.gate.Lock()
	defer c.gate.Unlock()
	return c.input.Next() - 1
}

// read reads what was typed, as the program does.
func (w *world) read() {
	w.program.In.Read(make([]byte, 100))
	synctest.Wait()
}

// settled returns when the modes have not changed for long.
func (w *world) settled() { time.Sleep(2 * settledAfter) }

// A hint comes with the output that it covers.
func TestHintWithOutput(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attachHinted("a@x", wire.RoleWriter)
		w.program.SetModes(ordinary|wire.Shell, 7)
		w.print("$ ") // frame 1 is the size
		a.wantHint("a prompt", wire.Hint{Out: 2, Terminal: ordinary | wire.Shell, Context: 7})
	})
}

// A program that turns the echo off behind its prompt is caught when the terminal was silent.
func TestHintAfterSilence(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attachHinted("a@x", wire.RoleWriter)
		w.program.SetModes(ordinary, 7)
		w.print("Password: ")
		time.Sleep(time.Millisecond)
		w.program.SetModes(hidden, 7)
		a.wantHint("at once", wire.Hint{Out: 2, Terminal: ordinary, Context: 7})
		time.Sleep(silentTime - time.Millisecond)
		a.wantHint("soon", wire.Hint{Out: 2, Terminal: hidden, Context: 7})
	})
}

// A program that starts slowly is caught too.
func TestHintAfterCommand(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attachHinted("a@x", wire.RoleWriter)
		w.program.SetModes(wire.Shell, 7)
		w.print("$ ")
		w.settled()
		key := a.typed("\r")
		w.read()
		w.print("\r\n")
		time.Sleep(80 * time.Millisecond)
		w.program.SetModes(hidden, 8)
		time.Sleep(80 * time.Millisecond)
		a.wantHint("at last", wire.Hint{Out: 3, In: key, Terminal: hidden, Context: 8})
	})
}

// A key that has shown nothing is told of after a while, which is longer where the modes have
// just changed.
func TestHintOfKeyWithoutEffect(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attachHinted("a@x", wire.RoleWriter)
		w.program.SetModes(0, 7)
		w.print("vi") // frame 2
		for i, wait := range []time.Duration{changeTime, effectTime} {
			key := a.typed("j")
			w.read()
			time.Sleep(wait - time.Millisecond)
			a.wantHint("too early", wire.Hint{Out: 2, In: uint64(i), Context: 7})
			time.Sleep(time.Millisecond)
			a.wantHint("at last", wire.Hint{Out: 2, In: key, Context: 7})
			w.settled()
		}
	})
}

// A key that was echoed costs no packet more. The next one tells of it.
func TestHintOfEcho(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attachHinted("a@x", wire.RoleWriter)
		w.program.SetModes(0, 7)
		w.print("$ ")
		w.settled()
		for key := uint64(1); key < 5; key++ {
			_, before := a.hint()
			a.typed("x")
			w.read()
			w.print("x")
			a.wantHint("the echo", wire.Hint{Out: key + 2, In: key - 1, Context: 7})
			time.Sleep(time.Second)
			if _, after := a.hint(); after != before+1 {
				t.Errorf("key %d had %d acks", key, after-before)
			}
		}
	})
}

// Of a key that is no text, as Enter, the client is told soon after the output that it caused: what is typed next may
// belong to another program.
func TestHintOfCommand(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attachHinted("a@x", wire.RoleWriter)
		w.program.SetModes(0, 7)
		w.print("$ ")
		w.settled()
		key := a.typed("\r")
		w.read()
		w.print("\r\n$ ")
		a.wantHint("the output", wire.Hint{Out: 3, Context: 7})
		time.Sleep(effectTime)
		a.wantHint("soon", wire.Hint{Out: 3, In: key, Context: 7})
		_, before := a.hint()
		time.Sleep(time.Second)
		if _, after := a.hint(); after != before {
			t.Errorf("%d acks more than that", after-before)
		}
	})
}

// A hint does not count input while the kernel may have the answer to it, unread.
func TestHintWaitsForReader(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attachHinted("a@x", wire.RoleWriter)
		w.program.SetModes(0, 7)
		w.program.Starve(true)
		a.typed("x")
		w.read()
		time.Sleep(time.Second)
		a.askHint()
		a.wantHint("starved", wire.Hint{Out: 1, Context: 7})
		w.program.Starve(false)
		a.askHint()
		a.wantHint("read", wire.Hint{Out: 1, In: 1, Context: 7})
	})
}

// While a secret is typed, nothing tells when its characters were.
func TestNoHintOfSecretKeys(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attachHinted("a@x", wire.RoleWriter)
		w.program.SetModes(hidden, 7)
		w.print("Password: ")
		w.settled()
		a.typed("s")
		w.read()
		time.Sleep(silentTime)
		synctest.Wait()
		_, before := a.hint()
		time.Sleep(time.Second)
		if _, after := a.hint(); after != before {
			t.Errorf("%d acks for a key that is a secret", after-before)
		}
	})
}

// Hints are for writers that want them. Each has its own input.
func TestHintRoles(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Size: wire.Size{Cols: 80, Rows: 24}}, func(w *world) {
		old := w.attach("old@x") // asks for none
		w.program.SetModes(ordinary, 7)
		a := w.attachHinted("a@x", wire.RoleWriter)
		shares := w.attachHinted("b@x", wire.RoleShare)
		watches := w.attachHinted("c@x", wire.RoleWatch)
		w.print("$ ")
		for range 3 {
			a.typed("x")
			w.read()
		}
		shares.typed("y")
		w.read()
		time.Sleep(time.Second)
		a.wantHint("the writer", wire.Hint{Out: 2, In: 3, Terminal: ordinary, Context: 7})
		shares.wantHint("the second writer", wire.Hint{Out: 2, In: 1, Terminal: ordinary, Context: 7})
		for _, c := range []*client{old, watches} {
			if last, n := c.hint(); n > 0 {
				t.Errorf("%s has got %+v", c.name, last)
			}
		}

		b := w.attachHinted("d@x", wire.RoleWriter)
		_, before := a.hint()
		w.print("more")
		b.wantHint("the next writer", wire.Hint{Out: 3, Terminal: ordinary, Context: 7})
		if _, after := a.hint(); after != before {
			t.Error("the displaced writer has got a hint")
		}
	})
}

// Hints continue over a new carrier, with higher numbers.
func TestHintAfterResume(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attachHinted("a@x", wire.RoleWriter)
		w.program.SetModes(ordinary, 7)
		a.typed("x")
		w.read()
		time.Sleep(time.Second)
		a.hangUp()
		w.print("meanwhile")
		w.program.SetModes(hidden, 8)
		a.resume()
		a.wantHint("on the new carrier", wire.Hint{Out: 2, In: 1, Terminal: hidden, Context: 8})
	})
}

// A pipe has no hints.
func TestNoHintWithoutTerminal(t *testing.T) {
	inBubble(t, wire.Launch{}, func(w *world) {
		w.instances++
		a, conn := w.joinWith("a@x", &wire.Attach{Instance: wire.InstanceID{1}, Hints: wire.HintsPredict})
		a.run(conn, true)
		w.print("text")
		if last, n := a.hint(); n > 0 {
			t.Errorf("got %+v", last)
		}
	})
}

// However much is typed at once, little of when that was is remembered.
func TestHintMemory(t *testing.T) {
	var h hinting
	now := time.Now()
	for frame := range uint64(10000) {
		h.gave(now, frame+1)
		now = now.Add(time.Duration(frame%7) * time.Millisecond)
	}
	first := h.given[0]
	if len(h.given) > maxGiven || now.Sub(first.at) < changeTime {
		t.Errorf("%d times of input, the first of frame %d", len(h.given), first.frame)
	}
}

func TestHintFits(t *testing.T) {
	if wire.MaxHint > session.MaxNote {
		t.Errorf("a hint of %d bytes does not fit into a note of %d", wire.MaxHint, session.MaxNote)
	}
}

// The modes are those of the program's end of the terminal.
func TestModesOfTerminal(t *testing.T) {
	for stty, want := range map[string]wire.TerminalFlags{
		"":                        ordinary,
		"-echo":                   hidden,
		"-icanon -isig -echo":     ordinary &^ (wire.Canonical | wire.Echo | wire.Signals),
		"erase ^H":                ordinary &^ wire.UsualKeys,
		"-echoctl -echoe -iexten": ordinary &^ (wire.EchoControl | wire.EchoErase | wire.Extended),
	} {
		t.Run(stty, func(t *testing.T) {
			launch := shell(t, true, "stty "+stty+"; exec cat >/dev/null")
			a := running(t, launch).attachHinted("a@x", wire.RoleWriter)
			a.awaitHint("its modes", func(h wire.Hint) bool { return h.Terminal == want })
		})
	}
}

// The context is that of the program in the foreground, and Shell that of the session's shell.
func TestContextOfTerminal(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	launch := shell(t, true, "")
	launch.Path, launch.Argv = bash, []string{"-bash", "--norc", "--noprofile"} // as the server names a login shell
	launch.Env = append(launch.Env, "PS1=ready: ", "TERM=xterm")
	a := running(t, launch).attachHinted("a@x", wire.RoleWriter)
	inShell := func(h wire.Hint) bool {
		return h.Terminal&(wire.Shell|wire.Canonical|wire.Echo) == wire.Shell && h.Context == wire.ContextOf([]byte("bash"))
	}
	a.awaitHint("a shell", inShell)
	a.write("sleep 1000\n")
	a.awaitHint("a program", func(h wire.Hint) bool {
		return h.Terminal == ordinary && h.Context == wire.ContextOf([]byte("sleep"))
	})
	a.write("\x03")
	a.awaitHint("the shell again", inShell)
	a.write("read -s secret; echo is $secret\n")
	a.awaitHint("no echo", func(h wire.Hint) bool { return h.Terminal.Secret() })
}
