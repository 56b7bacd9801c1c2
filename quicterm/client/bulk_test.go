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

// Where packets are lost on a fast path, several connections bring more than one, and no byte
// more or less. They are closed when they are not needed.
func TestBulkOverSeveralConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for seconds")
	}
	in := make([]byte, 6<<20)
	rand.Read(in)
	rate := func(connections string) (bytesPerSecond float64) {
		inWorld(t, netem.Config{Delay: 25 * time.Millisecond, Rate: 100e6, Queue: 625_000, Loss: 0.002}, false, func(w *world) {
			w.config = func(c *Config) {
				c.BulkConnections, c.Compression = connections, "off"
			}
			var out bytes.Buffer
			s := w.attach(Streams{Stdout: &out})
			begun := time.Now()
			w.kept.Go(func() {
				s.Write(in)
				s.gate.Lock()
				s.waitLocked(context.Background(), func() bool { return s.endpoint.Consumed() == s.ring.Next() })
				s.gate.Unlock()
				bytesPerSecond = float64(len(in)) / time.Since(begun).Seconds()
				time.Sleep(time.Minute)
				s.gate.Lock()
				if n := s.driver.Carriers(); n != 1 {
					t.Errorf("%d carriers a minute after much was sent", n)
				}
				s.gate.Unlock()
				s.CloseWrite()
			})
			if status, err := s.Run(context.Background()); status != 7 || err != nil {
				t.Errorf("status %d, %v; want 7", status, err)
			}
			if !bytes.Equal(out.Bytes(), in) {
				t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(in))
			}
			if n := w.sockets.Load(); connections == "1" && n > 1 {
				t.Errorf("%d sockets for one connection", n)
			}
		})
		return bytesPerSecond
	}
	alone, together := rate("1"), rate("4")
	t.Logf("one connection sends %.2f MB/s, four %.2f", alone/1e6, together/1e6)
	if together < 1.5*alone {
		t.Errorf("four connections send %.2f MB/s, one %.2f", together/1e6, alone/1e6)
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

// What a key does to a program that floods the terminal shows as soon over four connections as over one.
func TestKeyBehindStripes(t *testing.T) {
	link := netem.Config{Delay: 25 * time.Millisecond, Rate: 20e6, Queue: 125_000}
	inWorld(t, link, true, func(w *world) {
		w.floods = true
		w.config = func(c *Config) {
			c.BulkConnections, c.Compression = "4", "off"
		}
		shown := new(keyClock)
		s := w.attach(Streams{Stdout: shown})
		var typed []time.Time
		w.kept.Go(func() {
			time.Sleep(3 * time.Second)
			s.gate.Lock()
			if n := s.driver.Carriers(); n != 4 {
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
