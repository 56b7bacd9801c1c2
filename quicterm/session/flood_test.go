package session

import (
	"fmt"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A flood keeps a slow path busy, and what follows it is not long in coming: there
// is a queue of less than a round trip.
func TestFlood(t *testing.T) {
	for _, path := range []struct {
		bits int
		trip time.Duration
	}{
		{1e6, 20 * time.Millisecond},
		{1e6, 60 * time.Millisecond},
		{1e6, 300 * time.Millisecond},
		{20e6, 60 * time.Millisecond},
		{100e6, 10 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%d bits per second, %v", path.bits, path.trip), func(t *testing.T) {
			w := newWorld(t, 1)
			w.delay = path.trip / 2
			w.rate = path.bits / 8
			server := w.ends[1]
			server.ring = buffer.NewRing(4 << 20)
			server.peer = NewPeer(Config{Log: server.ring, Acked: 1, Next: 1, Reorder: 100, Window: 300 << 10})
			w.connect()
			w.append(1, 10)
			w.run(time.Second)
			client := w.ends[0]
			flood := func(d time.Duration) {
				for until := w.now.Add(d); w.now.Before(until); {
					for appetite := server.peer.Appetite(w.now); server.peer.Outstanding() <= appetite*17/16; {
						w.append(1, min(max(appetite/8, 1000), 32<<10))
					}
					w.step(until)
					if n := len(client.got); n > 0 {
						w.consume(0, n)
					}
				}
			}
			long := max(time.Second, min(40*time.Second, time.Duration(64e6/path.bits)*time.Second))
			flood(max(long/8, time.Second))
			begun, from := server.peer.Acked(), w.now
			_, before := client.peer.Next()
			flood(long)
			_, after := client.peer.Next()
			used := float64(after-before) / w.now.Sub(from).Seconds() / float64(w.rate)
			stop := w.now
			w.append(1, 2)
			last := server.ring.Next()
			for client.peer.window.Next() < last {
				w.step(w.now.Add(time.Second))
				if n := len(client.got); n > 0 {
					w.consume(0, n)
				}
			}
			took := w.now.Sub(stop)
			t.Logf("%.0f %% used, the end came after %v; credit %d, frames %d", 100*used, took, server.peer.Appetite(w.now), last-begun)
			if used < 0.9 {
				t.Errorf("%.0f %% of the path used", 100*used)
			}
			if most := path.trip*5/4 + 25*time.Millisecond; took > most {
				t.Errorf("the end of a flood came after %v, want at most %v", took, most)
			}
		})
	}
}

// The other end knows how much it is to get, and when that is over.
func TestBacklog(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 100_000
	server, client := w.ends[1], w.ends[0]
	server.ring = buffer.NewRing(4 << 20)
	server.peer = NewPeer(Config{Log: server.ring, Acked: 1, Next: 1, Reorder: 100, Window: 300 << 10})
	w.connect()
	for range 40 {
		w.append(1, 20<<10)
	}
	most := uint64(0)
	for range 20 {
		w.run(time.Second)
		most = max(most, client.peer.Backlog())
		w.consume(0, len(client.got))
	}
	if most < 500<<10 || most > 800<<10+40*buffer.Overhead {
		t.Errorf("told of %d bytes to come, want most of 800 KiB", most)
	}
	if n := client.peer.Backlog(); n != 0 || client.peer.window.Next() != server.ring.Next() {
		t.Errorf("%d bytes are said to be to come when all is there", n)
	}
}

// What comes after frames that are skipped waits for none of them, and they do not
// count for how fast the path is.
func TestSkip(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 100_000
	server, client := w.ends[1], w.ends[0]
	server.ring = buffer.NewRing(4 << 20)
	server.peer = NewPeer(Config{Log: server.ring, Acked: 1, Next: 1, Reorder: 100, Window: 300 << 10})
	w.connect()
	for range 2 {
		for range 1000 {
			w.append(1, 1000)
		}
		for range 20 {
			w.run(100 * time.Millisecond)
			w.consume(0, len(client.got))
		}
		before := server.peer.Appetite(w.now)
		server.peer.Skip(0)
		w.append(1, 10)
		if n := server.peer.Outstanding(); n > 1000 {
			t.Errorf("%d bytes are outstanding after a skip", n)
		}
		skipped := w.now
		for client.peer.window.Next() != server.ring.Next() {
			w.run(time.Millisecond)
		}
		if took := w.now.Sub(skipped); took > 2*w.delay+50*time.Millisecond {
			t.Errorf("what comes after a skip takes %v", took)
		}
		w.consume(0, len(client.got))
		w.run(time.Second)
		if after := server.peer.Appetite(w.now); after > before*3/2 {
			t.Errorf("credit grows from %d to %d by a skip", before, after)
		}
	}
}
