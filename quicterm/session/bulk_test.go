package session

import (
	"testing"
	"time"
)

// bulk makes end 1 send for a time, and returns how many bytes a second arrived in the second half of
// it. Each carrier has a path of its own that carries w.rate.
func (w *world) bulk(d time.Duration) float64 {
	client, server := w.ends[0], w.ends[1]
	var half uint64
	start := w.now
	for until := start.Add(d); w.now.Before(until); {
		for server.endpoint.Unacked() < 290<<10 {
			w.append(1, 8<<10)
		}
		w.step(w.now.Add(5 * time.Millisecond))
		w.consume(0, len(client.got))
		if w.now.Before(start.Add(d / 2)) {
			_, half = client.endpoint.Next()
		}
	}
	_, end := client.endpoint.Next()
	return float64(end-half) / (d / 2).Seconds()
}

// Bulk carriers add what their paths carry, each frame comes over one of them, and keys do not wait: they go on the
// carrier beside them, which has nothing else.
func TestBulkCarriersAddUp(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	w.connect()
	alone := w.bulk(4 * time.Second)
	for range 3 {
		w.connectBulk()
	}
	together := w.bulk(4 * time.Second)
	if together < 2.7*alone {
		t.Errorf("three carriers bring %.0f bytes a second, one %.0f", together, alone)
	}
	if n := w.ends[0].endpoint.Counters().Duplicates; n > 5 {
		t.Errorf("%d frames came twice", n)
	}
	if n := len(w.ends[1].endpoint.carriers[w.links[0].ids[1]].out.flight); n > 0 {
		t.Errorf("%d runs of bulk data are on the way on the carrier for keys", n)
	}
	typed := w.now
	w.append(0, 1)
	for len(w.ends[1].got) == 0 {
		w.step(typed.Add(time.Second))
	}
	if took := w.now.Sub(typed); took > w.delay {
		t.Errorf("a key took %v", took)
	}
	w.settle(time.Minute)
}

// A bulk carrier begins slowly, as TCP does. Until it is as fast as the carrier that it is beside, that one goes on.
func TestBulkCarrierBeginsSlowly(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 1_000_000
	whole := w.connect().ids[1]
	alone := w.bulk(4 * time.Second)
	w.connectBulk()
	if first := w.bulk(200 * time.Millisecond); first < 0.9*alone {
		t.Errorf("while a bulk carrier begins, %.0f bytes a second arrive, and %.0f before", first, alone)
	}
	w.bulk(4 * time.Second)
	if n := len(w.ends[1].endpoint.carriers[whole].out.flight); n > 0 {
		t.Errorf("%d runs of bulk data are on the way on the carrier for keys", n)
	}
	w.settle(time.Minute)
}

// A bulk carrier that dies without a word is to be closed after a second, and costs no frame.
func TestBulkCarrierDies(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	w.connect()
	l := w.connectBulk()
	w.bulk(2 * time.Second)
	server := w.ends[1].endpoint
	if server.Dead(l.ids[1]) {
		t.Error("a carrier that delivers is dead")
	}
	l.up = [2]bool{} // nothing arrives, and nobody is told
	at, _ := w.ends[0].endpoint.Next()
	w.bulk(900 * time.Millisecond)
	if server.Dead(l.ids[1]) {
		t.Error("it is dead in less than a second")
	}
	w.bulk(1600 * time.Millisecond)
	if now, _ := w.ends[0].endpoint.Next(); now < at+20 || !server.Dead(l.ids[1]) {
		t.Errorf("%d frames in 2.5 s after a carrier has died, dead %v", now-at, server.Dead(l.ids[1]))
	}
	w.settle(time.Minute)
	w.cut(l)
	w.bulk(time.Second)
	w.settle(time.Minute)
}

// In an outage of the whole network no bulk carrier is dead.
func TestBulkCarrierOutlivesOutage(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	w.connect()
	l := w.connectBulk()
	w.bulk(2 * time.Second)
	w.frozen = w.now.Add(5 * time.Second)
	w.bulk(4 * time.Second)
	if w.ends[1].endpoint.Dead(l.ids[1]) {
		t.Error("a carrier is dead that is as silent as the others")
	}
	w.settle(time.Minute)
}

// What bulk carriers had of an old path does not wait for them on a new one, on which they are not used.
func TestBulkCarrierOfOldPath(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	old := []*link{w.connect(), w.connectBulk()}
	w.bulk(2 * time.Second)
	for _, l := range old {
		l.up = [2]bool{}
	}
	w.connect()
	at, _ := w.ends[0].endpoint.Next()
	w.bulk(600 * time.Millisecond)
	if now, _ := w.ends[0].endpoint.Next(); now < at+10 {
		t.Errorf("%d frames in 600 ms on the new path", now-at)
	}
	w.settle(time.Minute)
}

// What several bulk carriers had that end together goes over the carrier that is left, in any order.
func TestBulkCarriersEnd(t *testing.T) {
	for seed := range uint64(10) {
		w := newWorld(t, seed)
		w.rate, w.jitter = 250_000, 20*time.Millisecond
		w.connect()
		carriers := []*link{w.connectBulk(), w.connectBulk(), w.connectBulk()}
		w.bulk(2 * time.Second)
		for _, l := range carriers {
			w.cut(l)
		}
		w.bulk(2 * time.Second)
		w.settle(time.Minute)
	}
}

// A Role comes on the stream before anything else.
func TestRolesOnWire(t *testing.T) {
	w := newWorld(t, 1)
	l := w.connectBulk()
	client := w.ends[0].endpoint
	wantOnWire(t, "a carrier for bulk data", client.Stream(w.now, l.ids[0], 1000), 0x88, 2)
}

// The sender tells its peer while its window limits it, and no longer.
func TestLimitedIsTold(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	for i, e := range w.ends {
		e.endpoint = NewEndpoint(Config{Log: e.ring, Acked: 1, Next: 1, Window: 300 << 10, TellLimited: i == 1})
	}
	w.connect()
	w.append(1, 1000)
	w.run(time.Second)
	client := w.ends[0].endpoint
	if client.PeerLimited(w.now) {
		t.Error("a peer that sends a line is limited")
	}
	w.bulk(2 * time.Second)
	if !client.PeerLimited(w.now) || client.Limited(w.now) {
		t.Error("a peer that sends much is not limited, or this end is")
	}
	w.settle(time.Minute)
	w.run(2 * time.Second)
	if client.PeerLimited(w.now) {
		t.Error("a peer that has nothing to send is limited")
	}
}

// A program whose output is taken only as far as there is room in the windows has a backlog as well.
func TestLimitedByWhatIsTaken(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	for i, e := range w.ends {
		e.endpoint = NewEndpoint(Config{Log: e.ring, Acked: 1, Next: 1, Window: 300 << 10, TellLimited: i == 1})
	}
	w.connect()
	w.connectBulk()
	client, server := w.ends[0], w.ends[1].endpoint
	for start := w.now; w.now.Before(start.Add(10 * time.Second)); {
		for server.Unacked() < server.SendWindow(w.now) {
			w.append(1, 2<<10)
		}
		w.step(w.now.Add(5 * time.Millisecond))
		w.consume(0, len(client.got))
		if w.now.Sub(start) > 3*time.Second && !client.endpoint.PeerLimited(w.now) {
			t.Fatalf("the client does not know of the backlog after %v", w.now.Sub(start))
		}
	}
}
