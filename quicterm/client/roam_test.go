//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate/netmon"
)

// An echoClock records when each byte of output arrived.
type echoClock struct {
	mu sync.Mutex
	at []time.Time
}

func (e *echoClock) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range b {
		e.at = append(e.at, time.Now())
	}
	return len(b), nil
}

func (e *echoClock) times() []time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.at)
}

// A program that does not read its input is no reason to dial.
func TestInputNotRead(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, false, func(w *world) {
		asleep := make(chan struct{})
		w.program.Sleep(asleep)
		var out bytes.Buffer
		s := w.attach(Streams{Stdout: &out})
		in := make([]byte, 3<<20)
		w.kept.Go(func() {
			s.Write(in)
			s.CloseWrite()
			time.Sleep(10 * time.Second)
			before := w.sockets.Load()
			time.Sleep(10 * time.Minute)
			if n := w.sockets.Load() - before; n > 0 {
				t.Errorf("%d dials to a server that answers", n)
			}
			close(asleep)
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v; want 7", status, err)
		}
		if !bytes.Equal(out.Bytes(), in) {
			t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(in))
		}
	})
}

// After an outage, the path that is answered first is kept, however many dials run, and its first
// packets bring what was typed.
func TestOutageOfSlowPath(t *testing.T) {
	for _, delay := range []time.Duration{30 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			inWorld(t, netem.Config{Delay: delay}, true, func(w *world) {
				out := new(echoClock)
				s := w.attach(Streams{Stdout: out})
				w.kept.Go(func() {
					type_ := func(n int) {
						for range n {
							s.Write([]byte("x"))
							time.Sleep(100 * time.Millisecond)
						}
					}
					type_(30)
					w.set(netem.Config{Down: true})
					type_(100)
					w.set(netem.Config{Delay: delay})
					repaired := time.Now()
					type_(100)
					for _, at := range out.times() {
						if took := at.Sub(repaired); took > 0 {
							if most := 4*delay + 100*time.Millisecond; took > most { // a knock, and a dial
								t.Errorf("the first echo took %v, want at most %v", took, most)
							}
							break
						}
					}
					if n := s.Status().Resumed; n > 1 {
						t.Errorf("%d moves, want at most one", n)
					}
					s.Write([]byte{4})
				})
				s.Run(context.Background())
			})
		})
	}
}

// While input waits in a black hole, the client spends little, and the answer comes soon after the
// hole ends: on the same path at once, and on a fresh one when a knock is answered.
func TestBlackHoleIsCheap(t *testing.T) {
	const delay = 50 * time.Millisecond
	for _, c := range []struct {
		why  string
		hole time.Duration
		dead bool // the interface that was in use stays dead
		keys int  // that are typed in the last second
		back time.Duration
		rate float64 // the most, in bytes a second
	}{
		{"short", 5130 * time.Millisecond, false, 0, 2*delay + 110*time.Millisecond, 9000},
		{"the path is back", 20130 * time.Millisecond, false, 0, 2*delay + 110*time.Millisecond, 4500},
		{"the path is back while the user types", 20130 * time.Millisecond, false, 20, 2*delay + 60*time.Millisecond, 4500},
		{"the other path is back", 20130 * time.Millisecond, true, 0, 4*delay + 2*100*time.Millisecond + 10*time.Millisecond, 4500},
		{"the connection is dead", 200 * time.Second, false, 0, 4*delay + 2*250*time.Millisecond, 4500},
	} {
		inWorld(t, netem.Config{Delay: delay}, true, func(w *world) {
			sent := func() (bytes uint64) {
				w.net.Do(func() {
					for _, p := range w.ports {
						bytes += p.to.Counters().Bytes
					}
				})
				return bytes
			}
			out := new(echoClock)
			s := w.attach(Streams{Stdout: out})
			w.kept.Go(func() {
				typeKeys(t, s, out, 30, 200*time.Millisecond, 2*delay+10*time.Millisecond)
				before := sent()
				s.Write([]byte("abc"))
				time.Sleep(delay + 10*time.Millisecond)
				w.set(netem.Config{Down: true}) // the answer is lost
				s.Write([]byte("abc"))
				time.Sleep(c.hole - time.Second)
				for range c.keys {
					s.Write([]byte("x"))
					time.Sleep(time.Second / 20)
				}
				time.Sleep(time.Second - time.Duration(c.keys)*time.Second/20)
				if rate := float64(sent()-before) / c.hole.Seconds(); rate > c.rate {
					t.Errorf("%s: %.0f bytes a second in the hole, want at most %.0f", c.why, rate, c.rate)
				}
				w.setPort(1, netem.Config{Delay: delay})
				if !c.dead {
					w.setPort(0, netem.Config{Delay: delay})
				}
				ended := time.Now()
				for len(out.times()) < 36+c.keys && time.Since(ended) < time.Minute {
					time.Sleep(time.Millisecond)
				}
				if took := time.Since(ended); took > c.back {
					t.Errorf("%s: the answer comes %v after the hole, want at most %v", c.why, took, c.back)
				}
				s.Write([]byte{4})
			})
			s.Run(context.Background())
		})
	}
}

// A key that is typed when the interface has become a black hole comes back over the other
// interface, soon after its ack is overdue.
func TestTypingIntoBlackHole(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
		out := new(echoClock)
		s := w.attach(Streams{Stdout: out})
		w.kept.Go(func() {
			for range 30 {
				s.Write([]byte("x"))
				time.Sleep(200 * time.Millisecond)
			}
			w.setPort(0, netem.Config{Down: true})
			typed := time.Now()
			s.Write([]byte("x"))
			time.Sleep(5 * time.Second)
			echoes := out.times()
			took := echoes[len(echoes)-1].Sub(typed)
			t.Logf("the key took %v", took)
			// The ack is overdue after 250 ms, the second candidate is dialed 50 ms later, and
			// takes a round trip of 60 ms.
			if len(echoes) != 31 || took > 400*time.Millisecond {
				t.Errorf("%d echoes, the last after %v; want 31, the last within 400 ms", len(echoes), took)
			}
			s.Write([]byte{4})
		})
		s.Run(context.Background())
	})
}

// Who leaves before an outage is noticed waits no longer than until it is.
func TestLeaveIntoBlackHole(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, false, func(w *world) {
		s := w.attach(Streams{Stdout: io.Discard})
		w.kept.Go(func() {
			time.Sleep(time.Second)
			w.set(netem.Config{Down: true})
			s.Write([]byte("x"))
			left := time.Now()
			s.Leave()
			<-s.roamerDone
			if took := time.Since(left); took > 300*time.Millisecond {
				t.Errorf("leaving took %v, want at most the 250 ms after which the ack is overdue", took)
			}
			w.set(netem.Config{Delay: 30 * time.Millisecond})
		})
		if _, err := s.Run(context.Background()); !errors.Is(err, ErrLeft) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// Hours offline without input cost few dials: a round every 10 s.
func TestHoursOffline(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
		s := w.attach(Streams{Stdout: io.Discard})
		w.kept.Go(func() {
			w.set(netem.Config{Down: true})
			time.Sleep(2 * time.Hour)
			before := w.sockets.Load()
			time.Sleep(10 * time.Minute)
			if n := w.sockets.Load() - before; n > 2*60+2 {
				t.Errorf("%d attempts in ten minutes, want one over each interface every 10 s", n)
			}
			w.set(netem.Config{Delay: 30 * time.Millisecond})
			time.Sleep(20 * time.Second)
			s.Write([]byte{4})
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v; want 7", status, err)
		}
	})
}

// With two paths in use, no key is late when the interface of one goes.
func TestRedundantLosesInterface(t *testing.T) {
	for lost, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
				w.paths = "redundant"
				out := new(echoClock)
				s := w.attach(Streams{Stdout: out})
				w.kept.Go(func() {
					time.Sleep(3 * time.Second)
					var typed []time.Time
					for i := range 500 {
						if i == 100 {
							w.plug(lost, false)
							w.tell(netmon.Changed)
						}
						typed = append(typed, time.Now())
						s.Write([]byte("x"))
						time.Sleep(20 * time.Millisecond)
					}
					time.Sleep(time.Second)
					for i, at := range out.times() {
						if took := at.Sub(typed[i]); took > 70*time.Millisecond {
							t.Errorf("key %d came back after %v", i, took)
						}
					}
					s.Write([]byte{4})
				})
				s.Run(context.Background())
			})
		})
	}
}
