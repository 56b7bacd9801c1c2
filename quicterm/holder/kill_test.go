//go:build linux || darwin

package holder

import (
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// kill kills the session, and checks that its program has ended when the answer comes.
func (w *world) kill() {
	w.t.Helper()
	m, _ := w.ask(&wire.Open{Client: "killer@x"}, &wire.Kill{Session: "whatever"})
	w.want("kill", m, &wire.Done{})
	w.locked(func(h *Holder) {
		if !h.life.reaped {
			w.t.Error("the answer to a kill came before the program has ended")
		}
	})
	synctest.Wait()
}

// wantKilled checks that the client is told who killed the session and when, and that the
// session is over then.
func (c *client) wantKilled(at time.Time) {
	c.w.t.Helper()
	if got := c.awaitExitStatus(); got.Status != 129 || got.Reason != "killed by killer@x" || !got.At.Equal(at) {
		c.w.t.Errorf("told %+v, want status 129, killed by killer@x at %v", got, at)
	}
	c.awaitEnd()
	if !c.w.over() {
		c.w.t.Error("the session continues after its end was seen")
	}
}

// A client that is connected when its session is killed is told at once.
func TestKillWithClient(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		at := time.Now()
		w.kill()
		a.wantKilled(at)
	})
}

// A killed session is over for everyone except the client that was away: it is told when
// it comes back.
func TestKillWithClientAway(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, Name: "name"}, func(w *world) {
		a := w.attach("a@x")
		a.hangUp()
		at := time.Now()
		w.kill()
		time.Sleep(hiddenTTL - time.Minute)
		m, _ := w.ask(&wire.Open{}, &wire.Query{})
		var s wire.State
		if w.want("query", m, &s); s.Visible || s.Name != "" || len(s.Info) > 0 {
			t.Errorf("a killed session is described as %+v", s)
		}
		m, _ = w.ask(&wire.Open{Client: "b@x"}, &wire.Attach{PTY: true})
		var e wire.Error
		if w.want("attach", m, &e); !strings.Contains(e.Text, "is over") {
			t.Errorf("another client is told %+v", e)
		}
		a.resume()
		a.wantKilled(at)
	})
}

// The session waits for that client for hiddenTTL.
func TestKilledClientNeverReturns(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a, conn := w.join("a@x")
		a.holds = true
		a.run(conn, true)
		w.kill()
		a.awaitExit()
		a.hangUp()
		time.Sleep(hiddenTTL - time.Second)
		if w.over() {
			t.Fatal("over before hiddenTTL")
		}
		time.Sleep(time.Second)
		if synctest.Wait(); !w.over() {
			t.Error("not over after hiddenTTL")
		}
	})
}

// Without a client that could come back, a killed session is over with its program.
func TestKillWithoutClient(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.kill()
		if !w.over() {
			t.Error("not over")
		}
	})
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.attach("a@x").leave()
		w.kill()
		if !w.over() {
			t.Error("not over after its client has left")
		}
	})
}

// A program that survives the hangup is killed after spawn.KillGrace.
func TestKillOfStubbornProgram(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.program.IgnoreSignals()
		start := time.Now()
		go func() {
			time.Sleep(spawn.KillGrace - time.Nanosecond)
			w.wantSignals("at first", syscall.SIGHUP)
			time.Sleep(time.Nanosecond)
			w.wantSignals("after a while", syscall.SIGHUP, syscall.SIGKILL)
		}()
		m, _ := w.ask(&wire.Open{Client: "killer@x"}, &wire.Kill{})
		var e wire.Error
		if w.want("kill", m, &e); !strings.Contains(e.Text, "has not ended") || time.Since(start) != killWait {
			t.Errorf("told %q after %v", e.Text, time.Since(start))
		}
		go func() {
			time.Sleep(spawn.KillGrace)
			w.wantSignals("when it is killed again", syscall.SIGHUP, syscall.SIGKILL, syscall.SIGHUP, syscall.SIGKILL)
			w.program.End(137)
		}()
		w.kill()
	})
}

// A pipe whose client reads nothing is killed: the output that waits for the client keeps nobody who kills it.
func TestKillOfPipeThatNobodyReads(t *testing.T) {
	const ring = 1 << 20
	inBubble(t, wire.Launch{Buffer: ring}, func(w *world) {
		_, conn := w.join("a@x")
		defer conn.Close()
		printed := make(chan struct{})
		go func() {
			w.program.Print(make([]byte, 16*ring))
			close(printed)
		}()
		synctest.Wait()
		select {
		case <-printed:
			t.Fatal("the program does not wait for its client")
		default:
		}
		start := time.Now()
		w.kill()
		if d := time.Since(start); d > 0 {
			t.Errorf("the answer to the kill came after %v", d)
		}
		w.locked(func(h *Holder) {
			if h.life.exited {
				t.Error("the output does not wait for the client")
			}
		})
	})
}

// A session whose program has ended is over when it is killed.
func TestKillAfterExit(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.program.End(0)
		synctest.Wait()
		if w.over() {
			t.Fatal("over before a client has seen its end")
		}
		if w.kill(); !w.over() {
			t.Error("not over")
		}
	})
}

// Who ends a session as an operator, and why, is told at once, while the program may still run, and at its end.
func TestEndByOperator(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		m, _ := w.ask(&wire.Open{Client: "root"}, &wire.End{Reason: "kernel\x1b update"})
		w.want("end", m, &wire.Done{})
		synctest.Wait()
		if got := a.awaitExitStatus(); got.Reason != "ended by root: kernel? update" {
			t.Errorf("told %+v", got)
		}
		want := session.Notice{Code: wire.NoticeEnding, Text: "root: kernel? update"}
		if len(a.notices) != 1 || a.notices[0] != want {
			t.Errorf("notices %q, want %q", a.notices, want)
		}
		a.awaitEnd()
	})
}
