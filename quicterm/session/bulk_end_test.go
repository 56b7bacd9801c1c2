package session

import (
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// Bulk carriers come, end or die without a word. The one whole carrier that is left brings all.
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
			w.bulkEvent()
		}
		w.connect()
		for _, l := range w.links {
			l.up = [2]bool{true, true} // so that cut tells the ends
		}
		w.keepOne(len(w.links) - 1)
		w.settle(3 * time.Minute)
	}
}

// bulkEvent lets one random thing happen to the carriers or to the logs.
func (w *world) bulkEvent() {
	n := len(w.links)
	switch w.rng.IntN(11) {
	case 0, 1:
		for range w.rng.IntN(20) {
			w.append(w.rng.IntN(2), w.rng.IntN(buffer.MaxPayload/2))
		}
	case 2:
		w.append(w.rng.IntN(2), w.rng.IntN(30))
	case 3:
		if n < 3 {
			w.connectBulk()
		}
	case 4:
		if n > 1 {
			i := w.rng.IntN(n)
			w.links[i].up = [2]bool{true, true}
			w.cut(w.links[i])
			w.links = append(w.links[:i:i], w.links[i+1:]...)
		}
	case 5:
		if n > 1 {
			w.links[1+w.rng.IntN(n-1)].up = [2]bool{} // it dies without a word
		}
	case 6:
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

// A peer that says again and again that a carrier is for bulk data takes no memory, and changes nothing on one that has
// begun.
func TestRolesWithoutEnd(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	w.connect()
	w.connectBulk()
	w.bulk(2 * time.Second)
	server := w.ends[1].endpoint
	for _, l := range w.links {
		before := server.carriers[l.ids[1]].role
		for range 1000 {
			f := buffer.Frame{Type: role, Payload: []byte{roleBulk}}
			if err := server.Receive(w.now, l.ids[1], StreamLane, f); err != nil {
				t.Fatal(err)
			}
		}
		c := server.carriers[l.ids[1]]
		if n := len(c.out.flight) + len(c.out.missed); n > 100 || c.role != before {
			t.Errorf("role %d before, %d then, with %d runs", before, c.role, n)
		}
	}
	w.settle(time.Minute)
}

// A gap in place of frames that bulk carriers have missed does not make the stream begin again with later
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
	c.out.cursor, c.out.missed = 9, []run{{from: 2, to: 5}}
	e.skipTo = 6
	if b := e.sendGap(w.now, c, 1000); b == nil || c.out.cursor != 9 {
		t.Errorf("after the gap %x the stream continues with frame %d, want 9", b, c.out.cursor)
	}
}

// A bulk carrier tells nothing of a backlog: what it has not sent, others have.
func TestBulkCarrierHasNoBacklog(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	w.connect()
	l := w.connectBulk()
	w.run(time.Second)
	for range 20 {
		w.append(1, 16<<10)
	}
	c := w.ends[1].endpoint.carriers[l.ids[1]]
	if at := w.ends[1].endpoint.backlogTime(c); !at.IsZero() {
		t.Errorf("a bulk carrier tells of a backlog at %v", at)
	}
}

// An end that was limited, and has told so, does not tell it again on a carrier that comes much later.
func TestLimitedOutlivesNoCarrier(t *testing.T) {
	w := newWorld(t, 1)
	w.rate = 250_000
	server := w.ends[1]
	server.endpoint = NewEndpoint(Config{Log: server.ring, Acked: 1, Next: 1, Window: 300 << 10,
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

// A peer that makes bulk carriers again and again, and acknowledges nothing, takes no memory.
func TestBulkCarriersWithoutEnd(t *testing.T) {
	w := newWorld(t, 1)
	first := w.connect()
	w.connect()
	w.run(time.Second)
	for range 30 {
		w.append(1, 8<<10)
	}
	server := w.ends[1].endpoint
	receive := func(id CarrierID, of buffer.Type, payload []byte) {
		if err := server.Receive(w.now, id, StreamLane, buffer.Frame{Type: of, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	received := appendAck(nil, ackInfo{received: server.acked, consumed: server.acked})
	receive(first.ids[1], role, []byte{roleStandBy})
	for range 500 {
		id := server.Up(w.now, 0, false)
		receive(id, role, []byte{roleBulk})
		receive(id, ack, received)
		for range 10 {
			server.Stream(w.now, id, 64<<10)
		}
		server.Down(w.now, id)
	}
	for id, c := range server.carriers {
		if n := len(c.out.missed); n > 100 {
			t.Errorf("carrier %d has missed %d runs", id, n)
		}
	}
	w.settle(time.Minute)
}

// What a bulk carrier had when it ended may have arrived. Its ack, which comes as soon as another carrier has sent it
// again, does not make that one's path look fast.
func TestAbandonedFramesShowNoRate(t *testing.T) {
	w := newWorld(t, 1)
	whole := w.connect().ids[1]
	w.run(time.Second)
	for range 5 {
		w.append(1, 8<<10)
	}
	server := w.ends[1].endpoint
	receive := func(id CarrierID, of buffer.Type, payload []byte) {
		if err := server.Receive(w.now, id, StreamLane, buffer.Frame{Type: of, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	bulk := server.Up(w.now, 0, false)
	receive(bulk, role, []byte{roleBulk})
	receive(bulk, ack, appendAck(nil, ackInfo{received: 1, consumed: 1}))
	for server.Stream(w.now, bulk, 64<<10) != nil {
	}
	sent := server.carriers[bulk].out.top
	server.Down(w.now, bulk)
	for server.Stream(w.now, whole, 64<<10) != nil {
	}
	w.now = w.now.Add(time.Millisecond)
	receive(whole, ack, appendAck(nil, ackInfo{received: sent, consumed: 1, highest: sent - 1}))
	if c := server.carriers[whole]; sent < 3 || c.cwnd.rate() > 0 {
		t.Errorf("an ack of %d frames after a millisecond shows a rate of %.0f bytes a second", sent-1, c.cwnd.rate())
	}
}
