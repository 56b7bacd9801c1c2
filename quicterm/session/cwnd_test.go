package session

import (
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A flood soon fills a long and fast path, also after small output, and its first queue is short.
func TestSlowStart(t *testing.T) {
	w := newWorld(t, 1)
	w.rate, w.delay = 12_500_000, 25*time.Millisecond
	server, client := w.ends[1], w.ends[0]
	server.ring = buffer.NewRing(8 << 20)
	server.endpoint = NewEndpoint(Config{Log: server.ring, Acked: 1, Next: 1, Window: 300 << 10})
	client.endpoint = NewEndpoint(Config{Log: client.ring, Acked: 1, Next: 1, Window: 4 << 20})
	link := w.connect()
	for range 20 {
		w.append(1, 3000)
		w.run(time.Second)
		w.consume(0, len(client.got))
	}
	_, before := client.endpoint.Next()
	const lasts = time.Second
	var queue time.Duration
	for until := w.now.Add(lasts); w.now.Before(until); w.step(until) {
		for server.ring.Size(server.endpoint.Acked()) < 4<<20 {
			w.append(1, 16<<10)
		}
		w.consume(0, len(client.got))
		queue = max(queue, link.ready[1].Sub(w.now)-w.delay)
	}
	_, after := client.endpoint.Next()
	used := float64(after-before) / float64(w.rate) / lasts.Seconds()
	t.Logf("%.0f %% of the first second used, queue %v", 100*used, queue)
	if used < 0.65 {
		t.Errorf("%.0f %% of the first second used", 100*used)
	}
	if queue > 2*w.delay {
		t.Errorf("a queue of %v", queue)
	}
}

// The rate falls when the transport takes less, although the window is never full then.
func TestRateOfBlockedTransport(t *testing.T) {
	w := cwnd{initial: initialCwnd}
	now, seq, delivered := time.Unix(0, 0), uint64(0), uint64(0)
	send := func(bytesPerTrip uint64) {
		for range 2 * rateSamples {
			seq++
			w.sent(now, seq, delivered)
			now, delivered = now.Add(100*time.Millisecond), delivered+bytesPerTrip
			w.addRTT(now, 100*time.Millisecond, 100*time.Millisecond)
			w.acked(now, seq, delivered, true)
		}
	}
	send(100_000)
	if r := w.rate(); r != 1_000_000 {
		t.Errorf("%v bytes per second, want 1000000", r)
	}
	send(20_000)
	if r := w.rate(); r != 200_000 {
		t.Errorf("%v bytes per second, want 200000", r)
	}
}

// The window stays open if the peer of a short path acknowledges later than the shortest round trip lets expect.
func TestLateAcksOnShortPath(t *testing.T) {
	w := cwnd{initial: initialCwnd}
	now, seq, delivered := time.Unix(0, 0), uint64(0), uint64(0)
	for trip := range 200 {
		rtt, delay := 8*time.Millisecond, 7*time.Millisecond
		if trip == 0 {
			rtt = time.Millisecond
		}
		size := w.size(now)
		seq++
		w.sent(now, seq, delivered)
		w.noteUse(0, size)
		now, delivered = now.Add(rtt+delay), delivered+uint64(size)
		w.addRTT(now, rtt, rtt)
		w.acked(now, seq, delivered, false)
	}
	if n := w.target(); n < initialCwnd {
		t.Errorf("a window of %d bytes", n)
	}
}
