//go:build linux || darwin

package holder

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// activity returns what the session does, as a daemon asks for a list.
func (w *world) activity(open *wire.Open) *wire.Activity {
	w.t.Helper()
	var s wire.State
	m, _ := w.ask(open, &wire.Query{Activity: true})
	w.want("query", m, &s)
	if !s.Visible {
		return nil
	}
	info, err := wire.DecodeInfo(s.Info)
	if err != nil {
		w.t.Fatal(err)
	}
	return info.Activity
}

// A list says what runs, what it waits for, and since when: nobody need be attached.
func TestActivity(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		want := func(why string, want wire.Activity) {
			t.Helper()
			if got := w.activity(&wire.Open{}); got == nil || *got != want {
				t.Errorf("%s: %+v, want %+v", why, got, want)
			}
		}
		started := time.Now()
		w.program.SetForeground("bash", started)
		w.program.SetModes(wire.Shell, wire.ContextOf([]byte("bash")))
		want("it starts", wire.Activity{Program: "bash", Waits: wire.WaitsNothing, Since: started.Unix()})
		time.Sleep(time.Minute)
		w.print("$ ")
		printed := time.Now().Unix()
		w.program.SetProgress(true, true)
		time.Sleep(time.Hour)
		want("the prompt", wire.Activity{Program: "bash", Waits: wire.WaitsPrompt, Since: printed})
		w.program.SetModes(wire.Shell|wire.Canonical, wire.ContextOf([]byte("bash")))
		want("read", wire.Activity{Program: "bash", Waits: wire.WaitsInput, Since: printed})
		w.program.SetForeground("sleep\x1b[1m", time.Now())
		w.program.SetModes(wire.Canonical, wire.ContextOf([]byte("sleep")))
		w.program.SetProgress(true, false)
		want("a command", wire.Activity{Program: "sleep?[1m", Waits: wire.WaitsNothing, Since: time.Now().Unix()})
		w.program.SetProgress(false, true)
		a := w.attach("a@x")
		a.typed("x")
		w.read()
		want("not read yet", wire.Activity{Program: "sleep?[1m", Waits: wire.WaitsNothing, Since: time.Now().Unix()})
		w.program.End(0)
		time.Sleep(time.Second)
		if got := w.activity(&wire.Open{}); got != nil {
			t.Errorf("a program that has ended: %+v", got)
		}
	})
}

// Who may not see a session learns nothing of what it does, and of one without a terminal nothing is known.
func TestActivityUnseen(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Scope: "5348"}, func(w *world) {
		w.program.SetForeground("vim", time.Now())
		if got := w.activity(&wire.Open{Scope: "5349"}); got != nil {
			t.Errorf("in another scope: %+v", got)
		}
		if got := w.activity(&wire.Open{Scope: "5348"}); got == nil || got.Program != "vim" {
			t.Errorf("in its scope: %+v", got)
		}
		if _, info := w.state(); info.Activity != nil {
			t.Errorf("nobody has asked for it: %+v", info.Activity)
		}
	})
	inBubble(t, wire.Launch{}, func(w *world) {
		if got := w.activity(&wire.Open{}); got != nil {
			t.Errorf("a pipe: %+v", got)
		}
	})
}

// Who comes back is told what has ended meanwhile, unless the writer there has had its output.
func TestEndedMeanwhile(t *testing.T) {
	const prompt = "\x1b]133;A\a$ \x1b]133;B\a"
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		run := func(command string) { w.print(prompt + command + "\r\n\x1b]133;C\a") }
		end := func(status string) (text string) {
			w.print("done\r\n\x1b]133;D;" + status + "\a" + prompt)
			text = fmt.Sprint(time.Now().Unix(), " ", status)
			time.Sleep(2 * drawDelay)
			return text
		}
		want := func(why string, c *client, want ...string) {
			t.Helper()
			synctest.Wait()
			c.gate.Lock()
			defer c.gate.Unlock()
			var got []string
			for _, n := range c.notices {
				if n.Code == wire.NoticeEnded {
					got = append(got, n.Text)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: told %q, want %q", why, got, want)
			}
		}
		a := w.attach("a@x")
		run("ls")
		end("0")
		run("make test")
		time.Sleep(time.Second)
		a.leave()
		a.awaitEnd()
		time.Sleep(time.Hour)
		ended := end("2") + " make test"
		time.Sleep(time.Hour)
		watch := w.attachAs("watch@x", wire.RoleWatch)
		want("a client that only watches", watch)
		a = w.attach("a@x")
		want("a client that comes", a, ended)
		a.listen()
		time.Sleep(time.Second)
		b := w.attach("b@x")
		want("a client that comes when another one has seen it", b)

		run("sleep")
		time.Sleep(time.Second)
		b.hangUp()
		end("1")
		time.Sleep(missedTime / 2)
		b.resume()
		want("a client that was away for a short time", b)
		run("build")
		time.Sleep(time.Second)
		b.hangUp()
		ended = end("0") + " build"
		time.Sleep(missedTime)
		first := b.resume()
		want("a client that was away", b, ended)
		first.Close()
		time.Sleep(time.Second)
		b.resume()
		want("on the next carrier, in case it has missed that", b, ended, ended)

		run("secret")
		time.Sleep(time.Second)
		b.leave()
		b.awaitEnd()
		end("0")
		w.ask(&wire.Open{}, &wire.Clear{})
		want("when the history was cleared", w.attach("c@x"))
	})
}

// Who peeks learns in which directory the program is, and which command has ended last.
func TestActivityOfPeek(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.program.SetForeground("bash", time.Now())
		w.print("\x1b]133;A\a$ \x1b]133;B\amake\r\n\x1b]133;C\a\x1b]133;D;2\a")
		ended := &wire.Ended{Command: "make", Status: 2, At: time.Now().Unix()}
		time.Sleep(2 * drawDelay)
		c, _ := w.joinIn("a@x", wire.RolePeek)
		if a := c.attached.Activity; a == nil || a.Program != "bash" || *a.Last != *ended {
			t.Errorf("%+v, want %+v", a, ended)
		}
		if c, _ := w.joinIn("b@x", wire.RoleWatch); c.attached.Activity != nil {
			t.Errorf("a client that watches is told %+v", c.attached.Activity)
		}
	})
}
