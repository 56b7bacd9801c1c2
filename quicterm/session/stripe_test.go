package session

import (
	"bytes"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
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

// Stripes add what their paths carry, each frame comes over one of them, and keys do not wait.
func TestStripesAddUp(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	w.connect()
	alone := w.bulk(4 * time.Second)
	for range 3 {
		w.connectStripe()
	}
	together := w.bulk(4 * time.Second)
	if together < 3.6*alone {
		t.Errorf("four carriers bring %.0f bytes a second, one %.0f", together, alone)
	}
	if n := w.ends[0].endpoint.Counters().Duplicates; n > 5 {
		t.Errorf("%d frames came twice", n)
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

// A stripe that dies without a word costs a moment, and no frame.
func TestStripeDies(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	w.connect()
	stripe := w.connectStripe()
	w.bulk(2 * time.Second)
	stripe.up = [2]bool{} // nothing arrives, and nobody is told
	at, _ := w.ends[0].endpoint.Next()
	w.bulk(2 * time.Second)
	if now, _ := w.ends[0].endpoint.Next(); now < at+20 {
		t.Errorf("%d frames in two seconds after a stripe has died", now-at)
	}
	w.settle(time.Minute)
	w.cut(stripe)
	w.bulk(time.Second)
	w.settle(time.Minute)
}

// What several stripes had that end together goes over the carrier that is left, in any order.
func TestStripesEnd(t *testing.T) {
	for seed := range uint64(10) {
		w := newWorld(t, seed)
		w.rate, w.jitter = 250_000, 20*time.Millisecond
		w.connect()
		stripes := []*link{w.connectStripe(), w.connectStripe(), w.connectStripe()}
		w.bulk(2 * time.Second)
		for _, l := range stripes {
			w.cut(l)
		}
		w.bulk(2 * time.Second)
		w.settle(time.Minute)
	}
}

// A Role comes on the stream before anything else, and a Limited frame is empty.
func TestRolesOnWire(t *testing.T) {
	w := newWorld(t, 1)
	l := w.connectStripe()
	client := w.ends[0].endpoint
	wantOnWire(t, "becoming a stripe", client.Stream(w.now, l.ids[0], 1000), 0x88, 2)
	client.Stream(w.now, l.ids[0], 1000)
	client.Activate(w.now, l.ids[0])
	wantOnWire(t, "becoming whole", client.Stream(w.now, l.ids[0], 1000), 0x88, 0)
	if b, want := appendLimited(nil), buffer.AppendFrame(nil, buffer.Frame{Type: 0x89}); !bytes.Equal(b, want) {
		t.Errorf("limited is %x, want %x", b, want)
	}
}

// The sender tells its peer while its window limits it, and no longer.
func TestLimitedIsTold(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	for i, e := range w.ends {
		e.endpoint = NewEndpoint(Config{Log: e.ring, Acked: 1, Next: 1, Reorder: 100, Window: 300 << 10, TellLimited: i == 1})
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
