//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// Bulk data goes over TCP where that opens, else over QUIC alone, and all of it arrives. The connections are closed when
// they are not needed.
func TestBulkRidesTCP(t *testing.T) {
	in := make([]byte, 6<<20)
	rand.Read(in)
	for _, tcp := range []bool{true, false} {
		inWorld(t, netem.Config{Delay: 25 * time.Millisecond, Rate: 20e6, Queue: 125_000, Loss: 0.001}, false, func(w *world) {
			w.noTCP = !tcp
			w.compression = "off"
			var out bytes.Buffer
			s := w.attach(Streams{Stdout: &out})
			carriers := func() int {
				s.gate.Lock()
				defer s.gate.Unlock()
				return s.driver.Carriers()
			}
			w.kept.Go(func() {
				w.kept.Go(func() {
					time.Sleep(2 * time.Second)
					if n := carriers(); (n > 1) != tcp || (w.net.Streams() > 0) != tcp {
						t.Errorf("with TCP %v: %d carriers while much is sent, %d ends of TCP", tcp, n, w.net.Streams())
					}
				})
				s.Write(in)
				s.gate.Lock()
				s.waitLocked(context.Background(), func() bool { return s.endpoint.Consumed() == s.ring.Next() })
				s.gate.Unlock()
				time.Sleep(time.Minute)
				if n := carriers(); n != 1 {
					t.Errorf("%d carriers a minute after much was sent", n)
				}
				s.CloseWrite()
			})
			if status, err := s.Run(context.Background()); status != 7 || err != nil {
				t.Errorf("status %d, %v; want 7", status, err)
			}
			if !bytes.Equal(out.Bytes(), in) {
				t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(in))
			}
		})
	}
}

// A keyClock records when each k of output arrived.
type keyClock struct {
	mu sync.Mutex
	at []time.Time
}

func (e *keyClock) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range bytes.Count(b, []byte("k")) {
		e.at = append(e.at, time.Now())
	}
	return len(b), nil
}

// What a key does to a program that floods the terminal shows as soon with bulk data over TCP as without.
func TestKeyBehindBulk(t *testing.T) {
	link := netem.Config{Delay: 25 * time.Millisecond, Rate: 20e6, Queue: 125_000}
	inWorld(t, link, true, func(w *world) {
		w.floods = true
		w.config = func(c *Config) {
			c.Compression = "off"
		}
		shown := new(keyClock)
		s := w.attach(Streams{Stdout: shown})
		var typed []time.Time
		w.kept.Go(func() {
			time.Sleep(3 * time.Second)
			s.gate.Lock()
			if n := s.driver.Carriers(); n < 2 {
				t.Errorf("%d carriers bring the flood", n)
			}
			s.gate.Unlock()
			for range 9 {
				typed = append(typed, time.Now())
				s.Write([]byte("k"))
				time.Sleep(300 * time.Millisecond)
			}
			s.Write([]byte{4})
		})
		s.Run(context.Background())
		if len(shown.at) != len(typed) {
			t.Fatalf("%d of %d keys show", len(shown.at), len(typed))
		}
		var took []time.Duration
		for i, at := range shown.at {
			took = append(took, at.Sub(typed[i]))
		}
		slices.Sort(took)
		if median, most := took[len(took)/2], 4*link.Delay+60*time.Millisecond; median > most {
			t.Errorf("a key takes %v, want at most %v", median, most)
		}
	})
}
