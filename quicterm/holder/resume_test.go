//go:build linux || darwin

package holder

import (
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Each proof is good once, for its own instance and session.
func TestResume(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		ask := func(why string, r *wire.Resume, want wire.Type) {
			t.Helper()
			m, c := w.ask(&wire.Open{}, r)
			if m.Type != want {
				t.Errorf("%s: answered with %d, want %d", why, m.Type, want)
			}
			if m.Type == wire.TypeDenied && !slices.Equal(m.Payload, mustEncode(t, &wire.Denied{}).Payload) {
				t.Errorf("%s: denied with %x", why, m.Payload)
			}
			if c != nil {
				c.Close()
				synctest.Wait()
			}
		}
		first, second := a.statement(), a.statement()
		ask("the second, raced past the first", second, wire.TypeResumed)
		ask("the first, late", first, wire.TypeResumed)
		ask("the first, again", first, wire.TypeDenied)
		ask("the second, again", second, wire.TypeDenied)
		wrong := a.statement()
		wrong.Proof[31] ^= 1
		ask("a wrong proof", wrong, wire.TypeDenied)
		wrong.Proof[31] ^= 1
		ask("its number with the right one", wrong, wire.TypeResumed)
		other := a.statement()
		other.Instance[0]++
		ask("another instance", other, wire.TypeDenied)
		other = a.statement()
		other.ID[0]++
		ask("another session", other, wire.TypeDenied)
		other = a.statement()
		other.UID++
		ask("another account", other, wire.TypeDenied)
		ask("number 0", &wire.Resume{UID: a.attached.UID, ID: a.attached.ID, Instance: first.Instance}, wire.TypeDenied)
		old := a.statement()
		for range 64 {
			ask("one after the other", a.statement(), wire.TypeResumed)
		}
		ask("one that is too old", old, wire.TypeDenied)
		a.write("still there")
		got := make([]byte, 11)
		if _, err := io.ReadFull(w.program.In, got); err != nil || string(got) != "still there" {
			t.Errorf("the program was given %q, %v", got, err)
		}
	})
}

// A client with too many carriers loses the oldest for a new one.
func TestManyCarriers(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		c, first := w.join("a@x")
		synctest.Wait()
		for n := 2; n <= maxCarriers+1; n++ {
			c.resume()
			w.locked(func(h *Holder) {
				if got, want := h.clients.writer().driver.Carriers(), min(n, maxCarriers); got != want {
					t.Errorf("%d carriers after %d, want %d", got, n, want)
				}
			})
		}
		if _, err := first.Write([]byte("x")); err == nil {
			t.Error("the first carrier was not closed")
		}
		w.print("on all of them, once")
		c.awaitOutput("on all of them, once")
		c.hangUp()
		w.wantPhase("all of them are gone", wire.PhaseDetached, 0)
	})
}

// A carrier that begins when its client is displaced, or the session over, is closed.
func TestLateCarriers(t *testing.T) {
	done := map[string]func(w *world){
		"over":      func(w *world) { w.locked(func(h *Holder) { h.finishLocked("for the test") }) },
		"displaced": func(w *world) { w.attach("b@x"); time.Sleep(displacedGrace) },
	}
	for why, do := range done {
		t.Run(why, func(t *testing.T) {
			inBubble(t, wire.Launch{PTY: true}, func(w *world) {
				a := w.attach("a@x")
				_, carry, err := w.h.Handle(&wire.Open{}, mustEncode(t, a.statement()))
				if err != nil {
					t.Fatal(err)
				}
				do(w)
				synctest.Wait()
				ours, theirs := carriertest.Pair()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					carry(theirs)
				}()
				go io.Copy(io.Discard, ours)
				<-ended
			})
		})
	}
}

// Whoever knows the session's id cannot fill the log with resumes that are denied.
func TestDeniedResumesFillNoLog(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		wrong := a.statement()
		wrong.Proof[31] ^= 1
		for range 1000 {
			w.ask(&wire.Open{}, wrong)
			time.Sleep(time.Millisecond)
		}
		if n := len(w.log.lines("resume denied")); n != 1 {
			t.Errorf("%d lines in a second, want 1", n)
		}
		time.Sleep(time.Second)
		w.ask(&wire.Open{}, wrong)
		if n := len(w.log.lines("resume denied", "suppressed=999")); n != 1 {
			t.Errorf("%d lines that count those that were not logged, want 1", n)
		}
	})
}
