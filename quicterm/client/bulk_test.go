//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"crypto/rand"
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
				c.Settings.BulkConnections, c.Settings.Compression = connections, "off"
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
