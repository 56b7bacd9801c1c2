//go:build linux || darwin

package client

import (
	"context"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// Typing costs few bytes: without loss the stream carries keys, and QUIC's acks with them; with little
// loss, datagrams carry them twice. docs/performance.md says where the bytes go.
func TestBytesOfKeys(t *testing.T) {
	const pace = 200 * time.Millisecond
	for _, c := range []struct {
		name   string
		loss   float64
		bytes  uint64 // for a key and its echo, with IP and UDP
		within time.Duration
	}{
		// The program here is so quick that the input counts as consumed only behind its echo, which
		// costs another ack.
		{"no loss", 0, 280, trip + 10*time.Millisecond},
		{"1 % loss", 0.01, 650, time.Second},
		{"5 % loss", 0.05, 900, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, netem.Config{Delay: trip / 2}, true, func(w *world) {
				out := new(echoClock)
				s := w.attach(Streams{Stdout: out})
				link := w.ports[0]
				w.kept.Go(func() {
					typeKeys(t, s, out, 5, pace, trip+10*time.Millisecond)
					w.net.Do(func() {
						lossy := netem.Config{Delay: trip / 2, Loss: c.loss}
						link.to.Set(lossy)
						link.from.Set(lossy)
					})
					typeKeys(t, s, out, 25, pace, c.within) // the path is measured
					before := w.bytes()
					const keys = 150
					typeKeys(t, s, out, keys, pace, c.within)
					bytes := (w.bytes() - before) / keys
					t.Logf("%d bytes a key", bytes)
					if bytes > c.bytes {
						t.Errorf("%d bytes a key, want at most %d", bytes, c.bytes)
					}
					s.Write([]byte{4})
				})
				if status, err := s.Run(context.Background()); status != 7 || err != nil {
					t.Errorf("status %d, %v", status, err)
				}
			})
		})
	}
}

// bytes returns how many bytes went over the first interface, with IP and UDP.
func (w *world) bytes() (bytes uint64) {
	w.net.Do(func() {
		up, down := w.ports[0].to.Counters(), w.ports[0].from.Counters()
		bytes = up.Bytes + down.Bytes + 28*(up.Packets+down.Packets)
	})
	return bytes
}

// The pings of an idle session and their answers are the smallest packets that QUIC makes, except that the
// process that keeps the session must hear one each 25 s. An ack is longer by 2 bytes for each packet number that
// quic-go has skipped: 107 and 126 bytes without, and there may be two.
func TestBytesOfIdle(t *testing.T) {
	inWorld(t, netem.Config{Delay: trip / 2}, true, func(w *world) {
		s := w.attach(Streams{Stdout: new(echoClock)})
		w.kept.Go(func() {
			for _, c := range []struct {
				interval time.Duration
				bytes    uint64
			}{{5 * time.Second, 112}, {25 * time.Second, 131}} {
				time.Sleep(c.interval + time.Second)
				before := w.bytes()
				time.Sleep(2 * c.interval)
				if bytes := (w.bytes() - before) / 2; bytes == 0 || bytes > c.bytes {
					t.Errorf("%d bytes for each ping and its answer, want at most %d", bytes, c.bytes)
				}
				time.Sleep(time.Minute)
			}
			s.Write([]byte{4})
		})
		s.Run(context.Background())
	})
}

// The process that keeps a session hears a client that is idle, so that it does not count as gone.
func TestIdleIsNotSilent(t *testing.T) {
	inWorld(t, netem.Config{Delay: trip / 2}, true, func(w *world) {
		s := w.attach(Streams{Stdout: new(echoClock)})
		w.kept.Go(func() {
			defer s.Write([]byte{4})
			s.Write([]byte("x"))
			time.Sleep(10 * time.Minute)
			c := New(s.client.cfg)
			defer c.Close()
			infos, _, err := c.List(context.Background())
			if err != nil || len(infos) != 1 {
				t.Errorf("%v, %v", infos, err)
				return
			}
			if silent := time.Since(time.Unix(infos[0].Heard, 0)); silent > 30*time.Second {
				t.Errorf("a client that is connected was heard %v ago", silent)
			}
		})
		s.Run(context.Background())
	})
}
