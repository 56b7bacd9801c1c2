package session

import (
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A stripe that is activated, and ends before it has delivered what it had as a stripe, costs no frame.
func TestActivatedStripeEnds(t *testing.T) {
	for seed := range uint64(10) {
		w := newWorld(t, seed)
		w.rate = 250_000
		w.connect()
		stripe := w.connectStripe()
		w.bulk(2 * time.Second)
		w.ends[0].endpoint.Activate(w.now, stripe.ids[0])
		w.run(60 * time.Millisecond) // the role has come
		w.cut(stripe)
		w.settle(time.Minute)
	}
}

// Stripes come, are activated, end or die without a word. The one carrier that is left brings all.
func TestLastCarrier(t *testing.T) {
	worlds := 50
	if testing.Short() {
		worlds = 15
	}
	for seed := range uint64(worlds) {
		w := newWorld(t, seed)
		w.datagrams, w.skips = seed%4 != 0, seed%7 == 0
		w.rate = 250_000
		w.connect()
		for range 150 {
			w.stripeEvent()
		}
		keep := 0
		for keep < len(w.links) && !w.links[keep].up[0] {
			keep++
		}
		if keep == len(w.links) {
			w.connect()
		}
		for _, l := range w.links {
			l.up = [2]bool{true, true} // so that cut tells the ends
		}
		w.keepOne(keep)
		w.ends[0].endpoint.Activate(w.now, w.links[0].ids[0])
		w.settle(3 * time.Minute)
	}
}

// stripeEvent lets one random thing happen to the carriers or to the logs.
func (w *world) stripeEvent() {
	client, n := w.ends[0].endpoint, len(w.links)
	switch w.rng.IntN(12) {
	case 0, 1:
		for range w.rng.IntN(20) {
			w.append(w.rng.IntN(2), w.rng.IntN(buffer.MaxPayload/2))
		}
	case 2:
		w.append(w.rng.IntN(2), w.rng.IntN(30))
	case 3:
		if n < 3 {
			w.connectStripe()
		}
	case 4:
		client.Activate(w.now, w.links[w.rng.IntN(n)].ids[0])
	case 5:
		if n > 1 {
			i := w.rng.IntN(n)
			w.links[i].up = [2]bool{true, true}
			w.cut(w.links[i])
			w.links = append(w.links[:i:i], w.links[i+1:]...)
		}
	case 6:
		if n > 1 {
			w.links[1+w.rng.IntN(n-1)].up = [2]bool{} // it dies without a word
		}
	case 7:
		if w.skips {
			w.ends[w.rng.IntN(2)].endpoint.Skip(1024)
		}
	default:
		w.run(time.Duration(w.rng.Int64N(int64(200 * time.Millisecond))))
		for i, e := range w.ends {
			w.consume(i, len(e.got))
		}
	}
}

// A peer that makes a carrier a stripe and whole again and again takes no memory.
func TestRolesWithoutEnd(t *testing.T) {
	for _, beside := range []bool{false, true} {
		w := newWorld(t, 1)
		w.rate = 250_000
		w.connect()
		if beside {
			w.connectStripe()
			w.bulk(2 * time.Second)
		} else {
			w.append(0, 1)
			w.append(1, 1)
			w.run(time.Second)
			for range 5 {
				w.append(1, 4000)
			}
		}
		server := w.ends[1].endpoint
		id := w.links[len(w.links)-1].ids[1]
		for range 1000 {
			for _, is := range []byte{roleStripe, roleWhole} {
				f := buffer.Frame{Type: role, Payload: []byte{is}}
				if err := server.Receive(w.now, id, StreamLane, f); err != nil {
					t.Fatal(err)
				}
				for range 100 {
					if server.Stream(w.now, id, 5000) == nil {
						break
					}
				}
			}
		}
		for _, c := range server.carriers {
			if n := len(c.flight) + len(c.leftOut) + len(c.missed); n > 200 {
				t.Errorf("another carrier %v: a carrier keeps %d runs", beside, n)
			}
		}
	}
}

// What is on a stripe that dies without a word goes over other carriers also while there are two that
// carry the whole log, and the stripe is used again when it lives.
func TestStuckStripe(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	w.connect()
	stripe := w.connectStripe()
	w.bulk(2 * time.Second)
	stripe.up = [2]bool{}
	second := w.connect()
	w.run(2 * w.delay)
	second.up = [2]bool{}
	w.await(10*time.Second, "delivered", w.delivered)
	s := w.ends[1].endpoint.carriers[stripe.ids[1]]
	if !s.stalled {
		t.Error("a dead stripe is not stalled")
	}
	stripe.up = [2]bool{true, true}
	w.ends[1].endpoint.Ping(stripe.ids[1])
	w.run(time.Second)
	if s.stalled {
		t.Error("a stripe that answers a ping is stalled")
	}
}

// A stripe that is activated sends again what it had, as its congestion window allows.
func TestActivatedStripeKeepsItsWindow(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 100_000
	w.connect()
	stripe := w.connectStripe()
	w.bulk(4 * time.Second)
	w.links[0].up = [2]bool{} // the other path is dead
	w.bulk(2 * time.Second)
	w.ends[0].endpoint.Activate(w.now, stripe.ids[0])
	w.run(w.delay + 2*time.Millisecond) // the role has come
	if queue := stripe.ready[1].Sub(w.now); queue > 600*time.Millisecond {
		t.Errorf("what is sent again takes %v", queue)
	}
}

// What is consumed while there are only stripes is acknowledged as soon as one is activated.
func TestConsumedWithoutWholeCarrier(t *testing.T) {
	w := newWorld(t, 1)
	l := w.connect()
	w.run(time.Second)
	w.append(1, 1000)
	w.run(time.Second)
	w.ends[0].endpoint.Stripe(w.now, l.ids[0])
	w.run(time.Second)
	w.consume(0, 1)
	w.ends[0].endpoint.Activate(w.now, l.ids[0])
	w.run(w.delay + time.Millisecond)
	if server := w.ends[1]; server.endpoint.Consumed() != server.ring.Next() {
		t.Error("the peer does not know what was consumed")
	}
}

// A gap in place of frames that stripes have missed does not make the stream begin again with later
// ones, which it has sent.
func TestGapBehindStreamCursor(t *testing.T) {
	w := newWorld(t, 1)
	l := w.connect()
	w.run(time.Second)
	for range 10 {
		w.append(1, 100)
	}
	e := w.ends[1].endpoint
	c := e.carriers[l.ids[1]]
	c.streamCursor, c.leftOut, c.missed = 9, []run{{from: 2, to: 5}}, []run{{from: 2, to: 5}}
	e.skipTo = 6
	if b := e.sendGap(w.now, c, 1000); b == nil || c.streamCursor != 9 {
		t.Errorf("after the gap %x the stream continues with frame %d, want 9", b, c.streamCursor)
	}
}

// A stripe tells nothing of a backlog: what it has not sent, others have.
func TestStripeHasNoBacklog(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	w.connect()
	stripe := w.connectStripe()
	w.run(time.Second)
	for range 20 {
		w.append(1, 16<<10)
	}
	c := w.ends[1].endpoint.carriers[stripe.ids[1]]
	if at := w.ends[1].endpoint.backlogTime(c); !at.IsZero() {
		t.Errorf("a stripe tells of a backlog at %v", at)
	}
}

// An end that was limited, and has told so, does not tell it again on a carrier that comes much later.
func TestLimitedOutlivesNoCarrier(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	server := w.ends[1]
	server.endpoint = NewEndpoint(Config{Log: server.ring, Acked: 1, Next: 1, Reorder: 100, Window: 300 << 10,
		TellLimited: true})
	l := w.connect()
	w.bulk(2 * time.Second)
	for e := server.endpoint; w.now.Sub(e.limited.told) < limitedInterval-50*time.Millisecond; {
		w.bulk(10 * time.Millisecond)
	}
	w.cut(l)
	w.links = nil
	w.run(10 * time.Second)
	w.connect()
	w.run(3 * w.delay)
	if w.ends[0].endpoint.PeerLimited(w.now) {
		t.Error("a peer is limited that has just begun to send")
	}
}
