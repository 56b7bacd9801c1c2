//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"fmt"
	mrand "math/rand/v2"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// buildLog returns what a compiler says of n files.
func buildLog(n int) []byte {
	rng := mrand.New(mrand.NewPCG(1, 0))
	var b []byte
	for range n {
		dir := []string{"session", "holder", "wire", "netmon"}[rng.IntN(4)]
		b = fmt.Appendf(b, "gcc -O2 -Wall -Wextra -Iinclude -Isrc/%s -c src/%s/file%d.c -o build/%s/file%d.o\n",
			dir, dir, rng.IntN(1000), dir, rng.IntN(1000))
	}
	return b
}

// A log goes to a program and back over a slow path. By itself it is compressed,
// both ways, from soon after the start.
func TestCompression(t *testing.T) {
	log := buildLog(10_000)
	link := netem.Config{Delay: 30 * time.Millisecond, Rate: 2e6}
	carried := make(map[string][2]uint64)
	for _, setting := range []string{"off", "auto", "on"} {
		t.Run(setting, func(t *testing.T) {
			var took time.Duration
			inWorld(t, link, false, func(w *world) {
				w.compression = setting
				var out bytes.Buffer
				s := w.attach(Streams{Stdout: &out})
				w.kept.Go(func() {
					s.Write(log)
					s.CloseWrite()
				})
				start := time.Now()
				if status, err := s.Run(context.Background()); status != 7 || err != nil {
					t.Errorf("status %d, %v; want 7", status, err)
				}
				took = time.Since(start)
				if !bytes.Equal(out.Bytes(), log) {
					t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(log))
				}
				w.net.Do(func() {
					carried[setting] = [2]uint64{w.ports[0].to.Counters().Bytes, w.ports[0].from.Counters().Bytes}
				})
			})
			t.Logf("%d bytes of log are %d to the server and %d back, in %v",
				len(log), carried[setting][0], carried[setting][1], took)
		})
	}
	for way, name := range []string{"to the server", "back"} {
		off := carried["off"][way]
		if off < uint64(len(log)) {
			t.Errorf("%s: %d bytes were carried without compression", name, off)
		}
		for _, setting := range []string{"auto", "on"} {
			if carried[setting][way]*4 > off {
				t.Errorf("%s: %d bytes with %s, %d without compression", name, carried[setting][way], setting, off)
			}
		}
	}
}

// A path that is as good as none is not worth it.
func TestCompressionNear(t *testing.T) {
	log := buildLog(10_000)
	inWorld(t, netem.Config{Delay: time.Millisecond, Rate: 200e6, Queue: 1 << 20}, false, func(w *world) {
		var out bytes.Buffer
		s := w.attach(Streams{Stdout: &out})
		w.kept.Go(func() {
			s.Write(log)
			s.CloseWrite()
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v; want 7", status, err)
		}
		w.net.Do(func() {
			if n := w.ports[0].from.Counters().Bytes; n < uint64(len(log)) {
				t.Errorf("%d bytes are carried for a log of %d", n, len(log))
			}
		})
	})
}
