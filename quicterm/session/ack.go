package session

import (
	"time"

	"github.com/quicterm/quicterm/buffer"
)

const (
	// ackDelay is how long an ack waits for a frame to ride on: longer than
	// a terminal takes to echo a key, shorter than anybody can notice.
	ackDelay = 5 * time.Millisecond

	// lazyAck is the same for the acks of small output to somebody who types: the
	// next key takes them along. Where something is lost, they do not wait.
	lazyAck = 150 * time.Millisecond

	// lossMemory is how long after a frame has come twice that is expected again.
	lossMemory = 2 * time.Second

	// ackEvery is how many received bytes do not wait for ackDelay.
	ackEvery = 256 << 10
)

func (p *Peer) appendAck(now time.Time, b []byte, c *carrier) []byte {
	b = buffer.AppendFrame(b, buffer.Frame{Type: ack, Payload: appendAck(nil, p.ackFor(now, c))})
	c.ackAt, c.owed, c.urgent, c.doneSaid, c.ackedAt = time.Time{}, 0, false, p.done, now
	c.saidLong = p.backlog(c) > longBacklog
	return b
}

// owe notes that n bytes of frames arrived, or word of some that never will.
func (p *Peer) owe(now time.Time, c *carrier, n int) {
	if c.owed += n; c.owed < ackEvery {
		now = now.Add(p.ackWait(now, c))
	}
	c.scheduleAck(now)
}

// oweAgain notes that a frame arrived that had been received. An ack may have been
// lost, or be on its way.
func (p *Peer) oweAgain(now time.Time, c *carrier) {
	c.urgent, c.doubled = true, now
	at := now.Add(ackDelay)
	if next := c.ackedAt.Add(c.rtt.smoothed * 11 / 10); at.Before(next) {
		at = next // until then more copies are under way
	}
	c.scheduleAck(at)
	if p.acked < p.log.Next() && now.Sub(c.tailAt) > c.rtt.smoothed {
		c.resendAt = earlier(c.resendAt, at) // what went with that ack has not arrived either
	}
}

// ackWait returns how long an ack may wait for a frame to ride on.
func (p *Peer) ackWait(now time.Time, c *carrier) time.Duration {
	if p.lazy && !c.urgent && now.Sub(c.doubled) > lossMemory && c.loss.rate() < lightLoss {
		return lazyAck
	}
	return ackDelay
}

// scheduleAck has an ack sent by the given time.
func (c *carrier) scheduleAck(at time.Time) { c.ackAt = earlier(c.ackAt, at) }

// handleCarrierAck takes what an ack says of its carrier, and whether it helps.
func (p *Peer) handleCarrierAck(now time.Time, c *carrier, a Ack, news bool) {
	c.ready = true
	c.acked = max(c.acked, a.Highest+1)
	if trip := c.rtt.acked(now.Add(-a.Delay), a.Highest); trip > 0 {
		c.credit.trip(now, trip, c.rtt.smoothed)
	}
	c.loss.acked(now, a.Datagrams, c.rtt.smoothed)
	p.usual.rtt, p.usual.loss, p.usual.credit, p.usual.shortest = c.rtt, c.loss.rate(), c.credit.limit(now), c.credit.shortest()
	c.backlog = a.Backlog
	if news {
		c.probes = 0
		c.probeAt = now.Add(2 * c.rtt.timeout())
	}
}
