//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	mrand "math/rand/v2"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate/netmon"
)

// Whatever happens, in any order, for hours: every typed byte comes back once, and no socket
// is open when the session is over.
func TestChaos(t *testing.T) {
	for seed, paths := range []string{"failover", "standby", "redundant"} {
		events := 50
		if paths == "redundant" && !testing.Short() {
			events = 200 // what is dialed in vain is met after about a hundred
		}
		t.Run(paths, func(t *testing.T) {
			inWorld(t, netem.Config{Delay: 20 * time.Millisecond}, true, func(w *world) {
				w.paths = paths
				var out bytes.Buffer
				s := w.attach(Streams{Stdout: &out})
				in := w.chaos(s, uint64(seed), events)
				start := time.Now()
				status, err := s.Run(context.Background())
				w.stop()
				w.serve()
				if status != 7 || err != nil {
					t.Errorf("status %d, %v; want 7", status, err)
				}
				if want := in(); !bytes.Equal(out.Bytes(), want) {
					t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(want))
				}
				if n := w.net.Sockets() + w.net.Streams(); n != 1 {
					t.Errorf("%d sockets are open, want the server's", n)
				}
				t.Logf("%d events in %v", events, time.Since(start).Round(time.Second))
			})
		})
	}
}

// chaos makes a number of random events happen while keys are typed, then repairs the network
// and ends the session. It returns a function that returns what was typed, for after the end.
func (w *world) chaos(s *Session, seed uint64, events int) (typed func() []byte) {
	rng := mrand.New(mrand.NewPCG(seed, 0))
	var all []byte
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	type_ := func(n int) {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(' ' + len(all)%90)
			all = append(all, b[i])
		}
		s.Write(b)
	}
	w.kept.Go(func() {
		for range events {
			for range rng.IntN(20) {
				type_(1)
				time.Sleep(upTo(200 * time.Millisecond))
			}
			port := rng.IntN(len(w.ports))
			change := netmon.Changed
			switch rng.IntN(12) {
			case 0:
				w.set(netem.Config{Down: true})
				type_(1)
				time.Sleep(upTo(5 * time.Second))
			case 1:
				w.set(netem.Config{Down: true})
				time.Sleep(upTo(10 * time.Minute))
			case 2:
				w.move(port)
			case 3:
				w.stop()
				time.Sleep(upTo(time.Minute))
				w.serve()
			case 4:
				type_(rng.IntN(100_000))
			case 5:
				time.Sleep(upTo(5 * time.Minute))
			case 6:
				change = netmon.Woke
			case 7:
				w.plug(port, false)
			case 8:
				w.plug(port, true)
			case 9:
				w.setPort(port, netem.Config{Down: true})
				type_(1)
				time.Sleep(upTo(10 * time.Second))
			case 10, 11:
				w.block(!w.noUDP)
				type_(1)
				time.Sleep(upTo(5 * time.Second))
			}
			if rng.IntN(2) == 0 {
				w.tell(change)
			}
			w.set(netem.Config{
				Delay:     upTo(300 * time.Millisecond),
				Jitter:    upTo(50*time.Millisecond) + 1,
				Loss:      rng.Float64() * 0.4,
				Duplicate: rng.Float64() * 0.1,
				Reorder:   rng.Float64() * 0.1,
			})
		}
		w.plug(0, true)
		w.block(false)
		w.set(netem.Config{Delay: 20 * time.Millisecond})
		s.CloseWrite()
	})
	return func() []byte { return all }
}
