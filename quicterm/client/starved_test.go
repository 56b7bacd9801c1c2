//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// A client that does not run for a while, with keys on their way, dials nothing: the path is
// as good as before.
func TestStarved(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
		var out bytes.Buffer
		s := w.attach(Streams{Stdout: &out})
		w.kept.Go(func() {
			for _, d := range []time.Duration{0, 300 * time.Millisecond, 3 * time.Second, 8 * time.Second} {
				before := w.sockets.Load()
				w.starve(d)
				for range 10 {
					s.Write([]byte("x"))
					time.Sleep(20 * time.Millisecond)
				}
				time.Sleep(10 * time.Second)
				if n := w.sockets.Load() - before; n > 0 {
					t.Errorf("%d dials of a client that did not run for %v", n, d)
				}
			}
			s.Write([]byte{4})
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil || out.String() != strings.Repeat("x", 40) {
			t.Errorf("status %d, %v, output %q", status, err, out.String())
		}
	})
}
