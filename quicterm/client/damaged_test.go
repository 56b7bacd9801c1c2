//go:build linux || darwin

package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// A client whose input memory has changed ends: no carrier could bring it.
func TestDamagedInput(t *testing.T) {
	for _, pty := range []bool{true, false} {
		link := netem.Config{Delay: 30 * time.Millisecond}
		inWorld(t, link, pty, func(w *world) {
			s := w.attach(Streams{})
			w.kept.Go(func() {
				time.Sleep(time.Second)
				w.set(netem.Config{Down: true})
				s.Write([]byte("changed"))
				s.gate.Lock()
				b, _ := s.ring.Slice(s.endpoint.Acked(), 1)
				b[len(b)-5] ^= 1
				s.gate.Unlock()
				s.Write([]byte("behind"))
				time.Sleep(time.Minute)
				w.set(link)
			})
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			if _, err := s.Run(ctx); !errors.Is(err, ErrDamaged) {
				t.Errorf("terminal %v: ends with %v", pty, err)
			}
			w.kept.Wait()
			w.program.Signal(0)
		})
	}
}
