//go:build linux || darwin

package client

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// watching runs a session in which a program prints every 100 ms, without input. It
// calls fail once output has come for a while, at a different time of the keepalive
// interval in each run, and returns how long after fail returned output arrived again.
func watching(t *testing.T, after time.Duration, fail func(w *world)) (pause time.Duration) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
		out := new(echoClock)
		s := w.attach(Streams{Stdout: out})
		stop := make(chan struct{})
		var printing sync.WaitGroup
		printing.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
					w.program.Print([]byte("."))
				}
			}
		})
		w.kept.Go(func() {
			time.Sleep(10*time.Second + after)
			seen := len(out.times())
			if seen == 0 {
				t.Error("no output before the failure")
			}
			fail(w)
			failed := time.Now()
			time.Sleep(time.Minute)
			for _, at := range out.times() {
				if at.Sub(failed) > 50*time.Millisecond { // what comes before was on its way
					pause = at.Sub(failed)
					break
				}
			}
			close(stop)
			printing.Wait()
			s.Write([]byte{4})
		})
		s.Run(context.Background())
	})
	return pause
}

// keepalive is how often a client that receives nothing asks for a sign of life.
const keepalive = 5 * time.Second

// A client that only watches output notices a restarted daemon by its next keepalive,
// which the new daemon answers with a stateless reset. If the daemon does not listen yet at
// that time, the client notices it by the keepalive after that, or by a dial.
func TestWatcherNoticesRestart(t *testing.T) {
	for _, down := range []time.Duration{0, 500 * time.Millisecond, 4900 * time.Millisecond, 5100 * time.Millisecond} {
		t.Run(down.String(), func(t *testing.T) {
			pause := watching(t, 0, func(w *world) {
				w.stop()
				time.Sleep(down)
				w.serve()
			})
			t.Logf("output continues %v after the daemon listens again", pause)
			limit := keepalive + time.Second
			if down < keepalive {
				limit = keepalive - down + 500*time.Millisecond
			}
			if pause == 0 || pause > limit {
				t.Errorf("output continues %v after the daemon listens again, want at most %v", pause, limit)
			}
		})
	}
}

// A client that only watches output leaves an interface that became a black hole soon
// after a keepalive stays unanswered.
func TestWatcherNoticesBlackHole(t *testing.T) {
	for after := time.Duration(0); after < time.Second; after += 300 * time.Millisecond {
		t.Run(after.String(), func(t *testing.T) {
			pause := watching(t, after, func(w *world) { w.setPort(0, netem.Config{Down: true}) })
			t.Logf("output continues %v after the interface failed", pause)
			if limit := keepalive + 2*time.Second; pause == 0 || pause > limit {
				t.Errorf("output continues %v after the interface failed, want at most %v", pause, limit)
			}
		})
	}
}

// When a NAT gives a client that only watches output another address, the output
// continues soon after a keepalive.
func TestWatcherNoticesNewAddress(t *testing.T) {
	pause := watching(t, 0, func(w *world) { w.move(0) })
	t.Logf("output continues %v after the address changed", pause)
	if limit := keepalive + 2*time.Second; pause == 0 || pause > limit {
		t.Errorf("output continues %v after the address changed, want at most %v", pause, limit)
	}
}
