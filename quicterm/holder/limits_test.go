//go:build linux || darwin

package holder

import (
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// wantPhase checks where the session is in its life, and for how long.
func (w *world) wantPhase(why string, phase wire.Phase, age time.Duration) {
	w.t.Helper()
	synctest.Wait()
	s, info := w.state()
	if since := time.Since(time.Unix(0, s.Since)); s.Phase != phase || info.Phase != phase || since != age {
		w.t.Errorf("%s: phase %d for %v, want %d for %v", why, s.Phase, since, phase, age)
	}
}

// wantSignals checks which signals the program got so far.
func (w *world) wantSignals(why string, want ...syscall.Signal) {
	w.t.Helper()
	synctest.Wait()
	if got := w.program.Signals(); !slices.Equal(got, want) {
		w.t.Errorf("%s: the program got %v, want %v", why, got, want)
	}
}

// A terminal without a client is hung up after detached_ttl, not sooner and not later.
func TestDetachedTTL(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Second, 5 * time.Hour} {
		inBubble(t, wire.Launch{PTY: true, DetachedTTL: ttl}, func(w *world) {
			w.program.IgnoreSignals()
			a := w.attach("a@x")
			time.Sleep(10 * ttl)
			w.wantSignals("with a client")
			a.hangUp()
			time.Sleep(ttl * 4 / 5)
			w.wantPhase("detached", wire.PhaseDetached, ttl*4/5)
			a.resume()
			w.wantPhase("back", wire.PhaseAttached, 0)
			time.Sleep(ttl * 4 / 5)
			a.hangUp()
			time.Sleep(ttl - time.Nanosecond)
			w.wantSignals("before detached_ttl")
			time.Sleep(time.Nanosecond)
			w.wantSignals("after detached_ttl", syscall.SIGHUP)
			time.Sleep(10 * ttl)
			w.wantSignals("and as it does not end", syscall.SIGHUP, syscall.SIGKILL)
		})
	}
}

// A client that attaches at the last moment keeps the session.
func TestAttachBeforeDetachedTTL(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true, DetachedTTL: time.Hour}, func(w *world) {
		w.attach("a@x").hangUp()
		time.Sleep(time.Hour - time.Nanosecond)
		b, conn := w.join("b@x")
		time.Sleep(time.Minute) // the daemon is slow
		w.wantSignals("with a client that attached in time")
		b.run(conn, true)
		time.Sleep(2 * time.Hour)
		w.wantSignals("with a client")
	})
}

// A client that comes back is told which limit has ended the session, and when.
func TestClientIsToldLimit(t *testing.T) {
	tests := []struct {
		launch wire.Launch
		reason string
	}{
		{wire.Launch{PTY: true, DetachedTTL: time.Hour}, "ended by detached_ttl (1h)"},
		{wire.Launch{PipeTTL: 90 * time.Minute}, "ended by the limit for a command without its client (1h30m)"},
	}
	for _, test := range tests {
		inBubble(t, test.launch, func(w *world) {
			a := w.attach("a@x")
			a.hangUp()
			at := time.Now().Add(test.launch.DetachedTTL + test.launch.PipeTTL)
			time.Sleep(10 * time.Hour)
			a.resume()
			if got := a.awaitExitStatus(); got.Status != 129 || got.Reason != test.reason || !got.At.Equal(at) {
				t.Errorf("told %+v, want status 129, %s at %v", got, test.reason, at)
			}
			a.awaitEnd()
			if !w.over() {
				t.Error("the session continues after its end was seen")
			}
		})
	}
}

// A command whose client is away is hung up after PipeTTL.
func TestPipeTTL(t *testing.T) {
	inBubble(t, wire.Launch{PipeTTL: time.Hour}, func(w *world) {
		a := w.attach("a@x")
		time.Sleep(10 * time.Hour)
		a.hangUp()
		time.Sleep(time.Hour - time.Nanosecond)
		w.wantSignals("before PipeTTL")
		time.Sleep(time.Nanosecond)
		w.wantSignals("after PipeTTL", syscall.SIGHUP)
		if w.over() {
			t.Error("over before its client knows")
		}
	})
}

// A command whose client never came is hung up as well.
func TestPipeTTLWithoutClient(t *testing.T) {
	inBubble(t, wire.Launch{PipeTTL: time.Hour}, func(w *world) {
		time.Sleep(time.Hour)
		w.wantSignals("after PipeTTL", syscall.SIGHUP)
		if !w.over() {
			t.Error("a session that no client can see continues after its program")
		}
	})
}

// A command that was hung up while its output waited for a client that is away ends.
func TestPipeFullAndGone(t *testing.T) {
	kill := func(w *world) { w.ask(&wire.Open{}, &wire.Kill{}) }
	expire := func(*world) { time.Sleep(time.Hour) }
	for why, end := range map[string]func(*world){"killed": kill, "expired": expire} {
		t.Run(why, func(t *testing.T) {
			inBubble(t, wire.Launch{PipeTTL: time.Hour}, func(w *world) {
				a := w.attach("a@x")
				a.hangUp()
				done := w.printing(lines(12 << 20))
				if done() {
					t.Fatal("the program does not wait")
				}
				end(w)
				w.wantSignals(why, syscall.SIGHUP)
				w.locked(func(h *Holder) {
					if !h.life.exited {
						t.Error("the program has not ended")
					}
				})
			})
		})
	}
}
