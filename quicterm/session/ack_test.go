package session

import (
	"testing"
	"time"
)

// A small echo on the stream is acknowledged with the last key before the ack is due, or alone.
func TestDelayedAcks(t *testing.T) {
	w := newWorld(t, 1)
	client := w.ends[0].endpoint
	client.config.DelayAcks = true
	id := w.connect().ids[0]
	c := client.carriers[id]
	w.run(time.Second)
	c.loss.suspectUntil, c.loss.expected = 0, 0
	key := func() { w.append(0, 1); w.run(time.Millisecond) }
	echo := func() { w.receive(w.links[0], 0, StreamLane, w.frame(1, 1)) }

	echo()
	sent := c.acks.sentAt
	w.run(100 * time.Millisecond)
	if key(); c.acks.sentAt != sent {
		t.Error("a key carries an ack long before that is due")
	}
	w.run(longAckDelay - keyGap - 50*time.Millisecond)
	if key(); c.acks.sentAt == sent {
		t.Error("no ack with a key before that is due")
	}
	sent = c.acks.sentAt
	echo()
	w.run(longAckDelay + 10*time.Millisecond)
	if c.acks.sentAt == sent {
		t.Error("no ack without a key")
	}
	sent = c.acks.sentAt
	w.receive(w.links[0], 0, StreamLane, w.frame(1, maxDelayed))
	w.run(shortAckDelay)
	if c.acks.sentAt == sent {
		t.Error("the ack of much output waits")
	}
}

// The ack of the end arrives before the end of the stream, also if that comes before any datagram.
func TestAckOfEnd(t *testing.T) {
	w := newWorld(t, 1)
	l := w.connect()
	w.run(time.Second)
	w.receive(l, 0, StreamLane, w.frame(1, 1))
	w.consume(0, 1)
	w.ends[0].endpoint.AckEnd(w.now)
	w.loss = 1 // of datagrams
	w.flush()
	w.run(time.Second)
	if server := w.ends[1].endpoint; server.Consumed() != server.log.Next() {
		t.Errorf("the peer knows that frames up to %d are consumed, want %d", server.Consumed()-1, server.log.Next()-1)
	}
}

// frame adds a frame to the log of end i, which does not send it, and returns it.
func (w *world) frame(i, size int) []byte {
	e := w.ends[i]
	e.endpoint.carriers[w.links[0].ids[i]].role = roleStandBy
	w.append(i, size)
	b, _ := e.ring.Slice(e.ring.Next()-1, maxCwnd)
	return b
}

// The window's end is left out when it is told already, and comes back when it has grown or is asked for.
func TestTellWindow(t *testing.T) {
	var c carrier
	tell := func(end uint64) bool {
		a := ackInfo{windowEnd: end}
		c.tellWindow(&a, 1600)
		return a.windowEnd == end
	}
	for i, want := range []bool{true, true, true, false, false} {
		if tell(2000+uint64(i)) != want {
			t.Errorf("ack %d: told %v", i, !want)
		}
	}
	if !tell(2100) || !tell(2101) || !tell(2102) || tell(2103) {
		t.Error("a larger one is not told three times")
	}
	if c.acks.windowTells = 0; !tell(2104) {
		t.Error("not told although asked")
	}
}

// An ack that comes late, and a copy that comes at once after frames that came once, show loss.
func TestSuspectedLoss(t *testing.T) {
	w := newWorld(t, 1)
	w.connect()
	w.append(0, 1)
	w.run(time.Second)
	e := w.ends[1].endpoint
	c := e.carriers[w.links[0].ids[1]]
	c.loss.suspectUntil, c.loss.last.sent, c.rtt.smoothed = 0, minLossSample, 100*time.Millisecond
	c.loss.last.arrived = minLossSample
	c.acks.cameOnce = minOnce
	e.noteCopy(c.acks.highestAt.Add(60*time.Millisecond), c, c.acks.highest)
	if c.loss.rate() > 0 {
		t.Error("a copy that comes late shows loss")
	}
	e.noteCopy(c.acks.highestAt.Add(10*time.Millisecond), c, c.acks.highest)
	if c.loss.rate() == 0 {
		t.Error("a copy shows no loss")
	}
	c.loss.suspectUntil = 0
	e.noteCopy(c.acks.highestAt.Add(16*time.Millisecond), c, c.acks.highest)
	if c.loss.rate() > 0 {
		t.Error("another copy shows loss again")
	}
	for _, took := range []time.Duration{60, 150, 200} {
		if c.rtt.smoothed = 100 * time.Millisecond; took == 60 {
			c.rtt.smoothed, c.rtt.variation = 10*time.Millisecond, 0 // a short path
		}
		c.rtt.start(w.now, 1000)
		c.rtt.recent[1000%recentFrames].sentAt = w.now.Add(-took * time.Millisecond)
		e.log = w.ends[0].ring
		for e.log.Next() <= 1000 {
			e.log.Append(output, nil)
		}
		if err := e.handleAck(w.now, c, ackInfo{received: 2, highest: 1000}); err != nil {
			t.Fatal(err)
		}
		if suspected := c.loss.rate() > 0; suspected != (took > 175) {
			t.Errorf("an ack after %d ms: suspected %v", took, suspected)
		}
	}
}

// A frame that comes over each of two carriers shows no loss.
func TestTwoCarriersAreNoLoss(t *testing.T) {
	w := newWorld(t, 1)
	w.connect()
	w.connect()
	typeKeys := func(keys int) {
		for range keys {
			for i := range w.ends {
				w.append(i, 1)
				w.run(100 * time.Millisecond)
				w.consume(1-i, 1)
			}
			w.jitter = 10*time.Millisecond - w.jitter // either may be the first
		}
	}
	typeKeys(50) // measures the paths
	for _, e := range w.ends {
		for _, c := range e.endpoint.carriers {
			if c.loss.suspectUntil = 0; !c.loss.measured() {
				t.Fatal("the loss is not measured")
			}
		}
	}
	typeKeys(50)
	for i, e := range w.ends {
		for id, c := range e.endpoint.carriers {
			if c.loss.rate() > 0 {
				t.Errorf("end %d suspects loss on carrier %d", i, id)
			}
		}
	}
}

// A copy of a tail of several frames, sent because the peer expects loss, does not end the delay of acks.
func TestCopyOfTailIsEarly(t *testing.T) {
	w := newWorld(t, 1)
	w.connect()
	w.append(0, 1)
	w.run(time.Second)
	e := w.ends[1].endpoint
	c := e.carriers[w.links[0].ids[1]]
	c.rtt.smoothed, c.acks.highest = 100*time.Millisecond, 3
	c.loss.suspectUntil, c.loss.expected, c.acks.duplicateAt = 0, 0, time.Time{}
	for _, seq := range []uint64{2, 3} {
		e.noteCopy(c.acks.highestAt.Add(6*time.Millisecond), c, seq)
	}
	if !c.acks.duplicateAt.IsZero() {
		t.Error("a copy after 6 ms counts as late")
	}
	e.noteCopy(c.acks.highestAt.Add(60*time.Millisecond), c, 2)
	if c.acks.duplicateAt.IsZero() {
		t.Error("a copy after 60 ms does not count as late")
	}
}
