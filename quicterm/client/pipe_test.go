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

// Every byte to and from a command without a terminal arrives, although the network is down
// for ten minutes, the daemon is restarted and the address changes.
func TestPipeThroughOutage(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond, Rate: 20e6, Queue: 1 << 20}, false, func(w *world) {
		var out bytes.Buffer
		s := w.attach(Streams{Stdout: &out})
		in := make([]byte, 3<<20)
		rand.Read(in)
		w.kept.Go(func() {
			third := len(in) / 3
			s.Write(in[:third])
			w.set(netem.Config{Down: true})
			s.Write(in[third : 2*third])
			time.Sleep(10 * time.Minute)
			w.stop()
			w.move(0)
			w.set(netem.Config{Delay: 50 * time.Millisecond})
			w.serve()
			s.Write(in[2*third:])
			s.CloseWrite()
		})
		start := time.Now()
		status, err := s.Run(context.Background())
		if status != 7 || err != nil {
			t.Errorf("status %d, %v; want 7", status, err)
		}
		if !bytes.Equal(out.Bytes(), in) {
			t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(in))
		}
		t.Logf("took %v", time.Since(start))
	})
}
