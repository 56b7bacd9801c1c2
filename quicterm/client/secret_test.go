//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A packet is one as who watches the wire sees it.
type packet struct {
	at   time.Duration // since the secret was begun
	sent bool          // by the client
	size int
}

// typeSecret types keys at some times while the terminal shows nothing, and returns the packets from the first key on.
func typeSecret(t *testing.T, config func(w *world), keys []time.Duration) (packets []packet) {
	inWorld(t, netem.Config{Delay: 23 * time.Millisecond}, true, func(w *world) {
		config(w)
		var mu sync.Mutex
		var begun time.Time // zero while nothing is recorded
		w.tap = func(sent bool, n int) {
			mu.Lock()
			defer mu.Unlock()
			if !begun.IsZero() {
				packets = append(packets, packet{time.Since(begun), sent, n})
			}
		}
		record := func(since time.Time) {
			mu.Lock()
			defer mu.Unlock()
			begun = since
		}
		s := w.attach(Streams{Stdout: new(echoClock), Hinted: func(wire.Hint) {}})
		w.kept.Go(func() {
			w.program.SetModes(wire.Canonical|wire.Echo, 1)
			s.Write([]byte("sudo\r"))
			time.Sleep(100 * time.Millisecond)
			w.program.SetModes(wire.Canonical, 1)
			w.program.Print([]byte("Password: "))
			time.Sleep(3*time.Second - time.Duration(time.Now().UnixNano())%time.Second + 7*time.Millisecond)
			first := time.Now()
			record(first)
			for _, at := range keys {
				time.Sleep(time.Until(first.Add(at)))
				s.Write([]byte("x"))
			}
			time.Sleep(time.Until(first.Add(keys[len(keys)-1] + 1500*time.Millisecond)))
			record(time.Time{})
			s.Write([]byte{4})
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v; want 7", status, err)
		}
	})
	return packets
}

// Who watches the wire while a secret is typed sees the same packets at the same times, however many keys there
// are between the first and the last: on a grid of 20 ms, until a second after the last. So it is over a carrier
// without datagrams.
func TestSecretOnWire(t *testing.T) {
	const ms = time.Millisecond
	few := []time.Duration{0, 1000 * ms}
	many := []time.Duration{0, 130 * ms, 133 * ms, 260 * ms, 401 * ms, 555 * ms, 777 * ms, 801 * ms, 930 * ms, 1000 * ms}
	for name, c := range map[string]struct {
		config  func(w *world)
		ownAcks int // the longest packet that has only acks of the transport
		slack   int // by how much those, and numbers of packets, make a packet longer
	}{
		"QUIC": {func(*world) {}, 33, 9},
		"TCP":  {func(w *world) { w.noUDP = true }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sent := range []bool{true, false} {
				var seen [2][]time.Duration
				sizes := make(map[int]bool)
				for i, keys := range [][]time.Duration{few, many} {
					for _, p := range typeSecret(t, c.config, keys) {
						if p.sent == sent && p.size > c.ownAcks {
							seen[i] = append(seen[i], p.at)
							sizes[p.size] = true
						}
					}
				}
				if !slices.Equal(seen[0], seen[1]) {
					t.Errorf("sent %v: packets with 2 keys at %v, with 10 at %v", sent, seen[0], seen[1])
				}
				all := slices.Sorted(maps.Keys(sizes))
				if all[len(all)-1]-all[0] > c.slack {
					t.Errorf("sent %v: packets of %v bytes, want the same for all", sent, all)
				}
				if n := len(seen[0]); n < 95 || n > 105 {
					t.Errorf("sent %v: %d packets in two seconds, want one each 20 ms", sent, n)
				}
				for _, at := range seen[0] {
					if (at-seen[0][0])%(20*ms) != 0 {
						t.Errorf("sent %v: a packet at %v, not on the grid", sent, at)
					}
				}
			}
		})
	}
}

// The program gets a secret as it was typed, and what the terminal shows again is typed as always after a second.
func TestSecretArrives(t *testing.T) {
	inWorld(t, netem.Config{Delay: 23 * time.Millisecond, Loss: 0.2}, true, func(w *world) {
		var out bytes.Buffer
		s := w.attach(Streams{Stdout: &out, Hinted: func(wire.Hint) {}})
		w.kept.Go(func() {
			w.program.SetModes(wire.Canonical, 1)
			w.program.Print([]byte("Password: "))
			time.Sleep(2 * time.Second)
			for range 20 {
				s.Write([]byte("x"))
				time.Sleep(35 * time.Millisecond)
			}
			time.Sleep(2 * time.Second)
			w.program.SetModes(wire.Canonical|wire.Echo, 1)
			w.program.Print([]byte("ok "))
			time.Sleep(2 * time.Second)
			s.Write([]byte("y"))
			time.Sleep(2 * time.Second)
			s.Write([]byte{4})
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v; want 7", status, err)
		}
		if got := out.String(); got != "Password: ok y" {
			t.Errorf("the terminal shows %q", got)
		}
		if n := w.program.Hidden(); n != 20 {
			t.Errorf("the program got %d keys of 20", n)
		}
	})
}
