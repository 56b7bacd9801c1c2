//go:build linux || darwin

package client

import (
	"context"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// A session of a week has another connection each day, with keys of its own. The user notices nothing: while one takes
// over from the other, each key is echoed once, and as soon as always.
func TestRenewedForWeek(t *testing.T) {
	const roundTrip = 60 * time.Millisecond
	days := 7
	if testing.Short() {
		days = 2
	}
	inWorld(t, netem.Config{Delay: roundTrip / 2}, true, func(w *world) {
		out := new(echoClock)
		opened := make(chan struct{}, 1)
		w.opened = func() {
			select {
			case opened <- struct{}{}:
			default:
			}
		}
		s := w.attach(Streams{Stdout: out})
		for len(opened) > 0 {
			<-opened // the first
		}
		var typed []time.Time
		key := func() {
			typed = append(typed, time.Now())
			s.Write([]byte("x"))
		}
		var renewals []time.Time
		w.kept.Go(func() {
			week, pause := time.After(time.Duration(days)*24*time.Hour), time.NewTicker(10*time.Minute)
			for done := false; !done; {
				select {
				case <-week:
					done = true
				case <-pause.C:
					key()
				case <-opened:
					renewals = append(renewals, time.Now())
					for range 40 {
						key()
						time.Sleep(5 * time.Millisecond)
					}
				}
			}
			time.Sleep(time.Second)
			s.Write([]byte{4})
		})
		began := time.Now()
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v; want 7", status, err)
		}
		if len(renewals) != days {
			t.Errorf("%d connections after the first one in %d days, want one a day", len(renewals), days)
		}
		for _, at := range renewals {
			if d := at.Sub(began); d < 22*time.Hour || d > 25*time.Hour {
				t.Errorf("the next connection comes after %v, want a day or a little less", d)
			}
			began = at
		}
		echoes := out.times()
		if len(echoes) != len(typed) {
			t.Fatalf("%d echoes of %d keys", len(echoes), len(typed))
		}
		for i, at := range typed {
			if d := echoes[i].Sub(at); d > roundTrip+20*time.Millisecond {
				t.Errorf("key %d took %v", i, d)
			}
		}
	})
}
