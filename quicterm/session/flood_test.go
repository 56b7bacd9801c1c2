package session

import (
	"fmt"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A flood keeps a slow path busy, and frames behind it arrive soon: the queue in the network
// is shorter than a round trip.
func TestFlood(t *testing.T) {
	for _, path := range []struct {
		bits      int
		trip      time.Duration
		datagrams bool
	}{
		{1e6, 20 * time.Millisecond, true},
		{1e6, 60 * time.Millisecond, true},
		{1e6, 300 * time.Millisecond, true},
		{20e6, 60 * time.Millisecond, true},
		{100e6, 10 * time.Millisecond, true},
		{1e6, 20 * time.Millisecond, false},
		{1e6, 100 * time.Millisecond, false},
		{100e6, 10 * time.Millisecond, false},
	} {
		t.Run(fmt.Sprintf("%d bits per second, %v, datagrams %v", path.bits, path.trip, path.datagrams), func(t *testing.T) {
			w := newWorld(t, 1)
			w.datagrams = path.datagrams
			w.delay = path.trip / 2
			w.rate = path.bits / 8
			server := w.ends[1]
			server.ring = buffer.NewRing(4 << 20)
			server.endpoint = NewEndpoint(Config{Log: server.ring, Acked: 1, Next: 1, Window: 300 << 10})
			w.connect()
			w.append(1, 10)
			w.run(time.Second)
			client := w.ends[0]
			flood := func(d time.Duration) {
				for until := w.now.Add(d); w.now.Before(until); {
					for appetite := server.endpoint.SendWindow(w.now); server.endpoint.Unacked() <= appetite*17/16; {
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
			begun, from := server.endpoint.Acked(), w.now
			_, before := client.endpoint.Next()
			flood(long)
			_, after := client.endpoint.Next()
			used := float64(after-before) / w.now.Sub(from).Seconds() / float64(w.rate)
			stop := w.now
			w.append(1, 2)
			last := server.ring.Next()
			for client.endpoint.reorder.Next() < last {
				w.step(w.now.Add(time.Second))
				if n := len(client.got); n > 0 {
					w.consume(0, n)
				}
			}
			took := w.now.Sub(stop)
			t.Logf("%.0f %% used, the end came after %v; send window %d, frames %d", 100*used, took, server.endpoint.SendWindow(w.now), last-begun)
			if used < 0.9 {
				t.Errorf("%.0f %% of the path used", 100*used)
			}
			if most := path.trip*5/4 + 25*time.Millisecond; took > most {
				t.Errorf("the end of a flood came after %v, want at most %v", took, most)
			}
		})
	}
}

// newSlowWorld returns a world with one carrier of 100 kB/s, and a server whose ring
// evicts old frames.
func newSlowWorld(t *testing.T) (w *world, server, client *end) {
	w = newWorld(t, 1)
	w.rate = 100_000
	server, client = w.ends[1], w.ends[0]
	server.ring = buffer.NewRing(4 << 20)
	server.endpoint = NewEndpoint(Config{Log: server.ring, Acked: 1, Next: 1, Window: 300 << 10})
	w.connect()
	return w, server, client
}

// The peer knows how long the backlog is, and when it is over.
func TestBacklog(t *testing.T) {
	w, server, client := newSlowWorld(t)
	for range 40 {
		w.append(1, 20<<10)
	}
	most := uint64(0)
	for range 20 {
		w.run(time.Second)
		most = max(most, client.endpoint.PeerBacklog())
		w.consume(0, len(client.got))
	}
	if most < 500<<10 || most > 800<<10+40*buffer.Overhead {
		t.Errorf("a backlog of %d bytes, want most of 800 KiB", most)
	}
	if n := client.endpoint.PeerBacklog(); n != 0 || client.endpoint.reorder.Next() != server.ring.Next() {
		t.Errorf("a backlog of %d bytes when all has arrived", n)
	}
}

// Frames behind skipped ones do not wait for them, and skipped frames do not count in the
// measured rate of the path.
func TestSkip(t *testing.T) {
	w, server, client := newSlowWorld(t)
	for range 2 {
		for range 1000 {
			w.append(1, 1000)
		}
		for range 20 {
			w.run(100 * time.Millisecond)
			w.consume(0, len(client.got))
		}
		before := server.endpoint.SendWindow(w.now)
		server.endpoint.Skip(0)
		w.append(1, 10)
		if n := server.endpoint.Unacked(); n > 1000 {
			t.Errorf("%d bytes are outstanding after a skip", n)
		}
		skipped := w.now
		for client.endpoint.reorder.Next() != server.ring.Next() {
			w.run(time.Millisecond)
		}
		if took := w.now.Sub(skipped); took > 2*w.delay+50*time.Millisecond {
			t.Errorf("what comes after a skip takes %v", took)
		}
		w.consume(0, len(client.got))
		w.run(time.Second)
		if after := server.endpoint.SendWindow(w.now); after > before*3/2 {
			t.Errorf("the send window grows from %d to %d by a skip", before, after)
		}
	}
}

// In any order of floods, skips and carriers, no end sends beyond the flow-control window
// of its peer, and gaps are exact.
func TestSkipsAmongFloods(t *testing.T) {
	worlds, steps := 70, 400
	if testing.Short() {
		worlds = 10
	}
	for seed := range worlds {
		w := newWorld(t, uint64(seed))
		w.datagrams = seed%4 != 0
		server, client := w.ends[1], w.ends[0]
		server.ring = buffer.NewRing([]int{0, 8 << 20}[seed%2])
		server.endpoint = NewEndpoint(Config{Log: server.ring, Acked: 1, Next: 1, Window: 300 << 10})
		w.rate = []int{0, 100_000, 2_000_000}[seed%3]
		w.connect()
		for range steps {
			switch w.rng.IntN(10) {
			case 0, 1:
				for range w.rng.IntN(60) {
					w.append(1, w.rng.IntN(16<<10))
				}
			case 2:
				w.append(1, w.rng.IntN(1000))
			case 3:
				server.endpoint.Skip(uint64(w.rng.IntN(2)) * 1024)
			case 4:
				if w.rng.IntN(3) == 0 {
					w.consume(0, len(client.got))
				}
			case 5:
				if len(w.links) < 3 {
					w.connect()
				}
			case 6:
				if n := len(w.links); n > 1 && w.rng.IntN(3) == 0 {
					w.cut(w.links[0])
					w.links = w.links[1:]
				}
			case 7:
				w.loss, w.jitter = float64(w.rng.IntN(2))/4, time.Duration(w.rng.IntN(200))*time.Millisecond
			default:
				w.run(time.Duration(w.rng.Int64N(int64(300 * time.Millisecond))))
			}
		}
		w.loss = 0
		w.settle(5 * time.Minute)
	}
}

// An outage that a carrier survives, and in which more is printed than the ring holds,
// changes neither the measured rate of the path nor its round trip.
func TestFloodAfterOutage(t *testing.T) {
	w, server, client := newSlowWorld(t)
	got := func() int {
		_, offset := client.endpoint.Next()
		return int(offset - client.endpoint.Counters().GapBytes)
	}
	flood := func(d time.Duration) (rate float64, most int) {
		before := got()
		for until := w.now.Add(d); w.now.Before(until); {
			for most = max(most, server.endpoint.SendWindow(w.now)); server.endpoint.Unacked() <= 32<<10; {
				w.append(1, 1000)
			}
			w.run(10 * time.Millisecond)
			w.consume(0, len(client.got))
		}
		return float64(got()-before) / d.Seconds(), most
	}
	flood(10 * time.Second)
	_, before := flood(10 * time.Second)
	for _, outage := range []time.Duration{20 * time.Second, time.Minute} {
		w.frozen = w.now.Add(outage)
		for range 6000 {
			w.append(1, 1000)
		}
		w.run(outage)
		w.consume(0, len(client.got))
		rate, after := flood(10 * time.Second)
		t.Logf("%v: %.0f bytes per second, send window at most %d, before %d", outage, rate, after, before)
		if after > before*3/2 {
			t.Errorf("%v: the send window grows from %d to %d by an outage", outage, before, after)
		}
		if rate < 0.8*float64(w.rate) {
			t.Errorf("%v: then %.0f bytes per second arrive, of %d", outage, rate, w.rate)
		}
	}
}

// Skips in a row do not send more at once than the path takes.
func TestSkipsInARow(t *testing.T) {
	w := newWorld(t, 1)
	w.rate, w.delay = 100_000, 150*time.Millisecond
	server, client := w.ends[1], w.ends[0]
	server.ring = buffer.NewRing(8 << 20)
	server.endpoint = NewEndpoint(Config{Log: server.ring, Acked: 1, Next: 1, Window: 300 << 10})
	client.endpoint = NewEndpoint(Config{Log: client.ring, Acked: 1, Next: 1, Window: 4 << 20})
	w.connect()
	bulk := func() {
		for range 40 {
			w.append(1, 1000)
		}
	}
	for range 100 {
		bulk()
		w.run(100 * time.Millisecond)
		w.consume(0, len(client.got))
	}
	for range 100 {
		bulk()
		w.run(10 * time.Millisecond)
		server.endpoint.Skip(0)
		w.consume(0, len(client.got))
	}
	w.append(1, 10)
	start := w.now
	for client.endpoint.reorder.Next() != server.ring.Next() {
		w.run(time.Millisecond)
		w.consume(0, len(client.got))
	}
	if took := w.now.Sub(start); took > 3*w.delay+100*time.Millisecond {
		t.Errorf("what comes after many skips takes %v", took)
	}
}

// Beside bulk, acks go in datagrams: they do not wait behind what is on the stream.
func TestAcksBesideBulk(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 1_000_000
	l := w.connect()
	w.append(0, 1)
	w.run(time.Second)
	server := w.ends[1].endpoint
	c := server.carriers[l.ids[1]]
	c.loss.suspectUntil, c.loss.expected = 0, 0 // a path without loss
	w.append(1, 8<<10)
	c.scheduleAck(w.now.Add(shortAckDelay))
	b := server.Stream(w.now, l.ids[1], 32<<10)
	if f, _, err := buffer.Parse(b); err != nil || f.Type != output {
		t.Errorf("bulk begins with a frame of type %#x, %v", f.Type, err)
	}
	if at := server.SendTime(w.now, l.ids[1], DatagramLane); at.After(w.now.Add(shortAckDelay)) {
		t.Errorf("an ack goes in a datagram at %v, want within %v", at, shortAckDelay)
	}
}
