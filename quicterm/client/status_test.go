//go:build linux || darwin

package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// Status returns at once while Run runs, in every state of the link and also while Changed
// blocks, and soon if Run does not run.
func TestStatus(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
		stuck := make(chan struct{})
		freed := make(chan struct{})
		s := w.attach(Streams{Changed: func(l LinkState) {
			if l.State == Offline {
				<-stuck
			}
		}})
		status := func(why string, within time.Duration, paths int) Status {
			t.Helper()
			begun := time.Now()
			st := s.Status()
			if took := time.Since(begun); took > within {
				t.Errorf("%s: took %v", why, took)
			}
			if st.Name != "world" || len(st.Paths) != paths {
				t.Errorf("%s: got %+v, want %d paths", why, st, paths)
			}
			return st
		}
		status("before Run", StatusTimeout, 0)
		var left error
		w.kept.Go(func() {
			defer close(freed)
			_, left = s.Run(context.Background())
		})
		time.Sleep(time.Second)
		st := status("live", 0, 1)
		route, _ := w.Lookup(serverAddr, "")
		if p := st.Paths[0]; st.Link.State != Live || p.State != "live" || p.Interface != route.Interface ||
			p.Local.Addr() != route.Source || p.Remote != serverAddr || p.RTT < 60*time.Millisecond ||
			p.Sent == 0 || p.Received == 0 || p.Heard.IsZero() {
			t.Errorf("got %+v", st)
		}
		w.set(netem.Config{Down: true})
		s.Write([]byte("x"))
		time.Sleep(time.Second)
		if st := status("suspect", 0, 1); st.Link.State != Suspect || st.Unacked == 0 {
			t.Errorf("got %+v", st)
		}
		time.Sleep(time.Minute)
		status("stuck", 0, 1)
		close(stuck)
		time.Sleep(time.Second)
		if st := s.Status(); st.Link.State != Offline {
			t.Errorf("got %+v", st)
		}
		s.Leave()
		<-freed
		if !errors.Is(left, ErrLeft) {
			t.Errorf("Run returned %v", left)
		}
		status("after Run", 0, 0)
		w.program.Signal(0)
	})
}

// The loss that a user is told is that of the path.
func TestStatusTellsLoss(t *testing.T) {
	for _, percent := range []float64{0, 1, 10, 30} {
		t.Run(fmt.Sprintf("%v %%", percent), func(t *testing.T) {
			inWorld(t, netem.Config{Delay: 20 * time.Millisecond, Loss: percent / 100}, true, func(w *world) {
				s := w.attach(Streams{})
				w.kept.Go(func() {
					// What is told is of the latest packets: the mean of 40 times is that of 2400, whose share of lost ones is within
					// the bounds except in one of 10 000 cases.
					var told float64
					const times = 40
					for range times {
						for range 60 {
							s.Write([]byte("x"))
							time.Sleep(100 * time.Millisecond)
						}
						st := s.Status()
						if len(st.Paths) == 0 {
							t.Errorf("no path: %+v", st)
							break
						}
						told += 100 * st.Paths[0].Loss / times
					}
					if math.Abs(told-percent) > 1+percent/6 {
						t.Errorf("told %.1f %%, want %v", told, percent)
					}
					s.Write([]byte{4})
				})
				s.Run(context.Background())
			})
		})
	}
}
