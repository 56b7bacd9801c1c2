//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// Output from the time of an outage is marked as old when it is some seconds old, and what
// follows it is live again.
func TestOutputOfOutageIsOld(t *testing.T) {
	for outage, want := range map[time.Duration]string{2 * time.Second: ">aqf", 20 * time.Second: ">a<q>f"} {
		inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
			var out bytes.Buffer
			s := w.attach(Streams{
				Stdout:    &out,
				Replaying: func() { out.WriteByte('<') },
				Replayed:  func() { out.WriteByte('>') },
			})
			toClient := func(cfg netem.Config) {
				w.net.Do(func() {
					for _, p := range w.ports {
						p.from.Set(cfg)
					}
				})
			}
			w.kept.Go(func() {
				s.Write([]byte("a"))
				time.Sleep(time.Second)
				toClient(netem.Config{Down: true})
				s.Write([]byte("q"))
				time.Sleep(outage)
				toClient(netem.Config{Delay: 30 * time.Millisecond})
				time.Sleep(20 * time.Second)
				s.Write([]byte("f"))
				time.Sleep(time.Second)
				s.Write([]byte{4})
			})
			s.Run(context.Background())
			if got := out.String(); got != want {
				t.Errorf("outage of %v: the output is %q, want %q", outage, got, want)
			}
		})
	}
}
