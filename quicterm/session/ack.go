package session

import (
	"time"

	"github.com/quicterm/quicterm/buffer"
)

const (
	// minOnce is how many frames must have come once before a copy says that the peer has seen
	// loss. So two ends that have no loss do not go on to suspect it because of each other.
	minOnce = 4

	// maxDelayed is how many bytes of frames on a stream wait for a delayed ack: what a person
	// types, and its echo. The sender of more waits for acks, until bulkMemory later.
	maxDelayed = 1 << 10

	// maxUnacked is how many received bytes are acknowledged at once.
	maxUnacked = 256 << 10
)

// acks is what a carrier knows of the acks that it sends.
type acks struct {
	highest   uint64    // the highest frame that arrived on this carrier
	highestAt time.Time // when it arrived
	datagrams uint64    // received

	at          time.Time // when to send an ack at the latest, or zero
	bytes       int       // received since the last ack
	soon        bool      // that ack must not be delayed
	bulkAt      time.Time // when the stream last brought more than a person types
	duplicateAt time.Time // when a frame last came again
	cameOnce    int       // frames since the last that came again at once

	sentAt       time.Time // when the last ack was sent
	sentConsumed uint64    // the Consumed of that ack
	sentBacklog  bool      // it told of a long backlog
	windowTold   uint64    // the window's end that the peer was told
	windowTells  int       // how often
}

func (e *Endpoint) appendAck(now time.Time, b []byte, c *carrier) []byte {
	a := e.ackFor(now, c)
	c.acks.at, c.acks.sentAt, c.acks.bytes, c.acks.soon = time.Time{}, now, 0, false
	c.acks.sentConsumed, c.acks.sentBacklog = a.consumed, a.backlog > longBacklog
	if c.grid.padsAnswer {
		c.grid.padsAnswer, c.grid.padding = false, answersPadded
	}
	var array [maxAckBytes + MaxNote]byte
	c.tellWindow(&a, e.windowSize)
	frame := buffer.Frame{Type: ack, Payload: appendAck(array[:0], a)}
	if e.config.Note != nil {
		frame.Payload = append(frame.Payload, e.config.Note(now)...)
	}
	return buffer.AppendFrame(b, frame)
}

// tellWindow leaves the window's end out of an ack if the peer was told three times of one that is hardly less.
func (c *carrier) tellWindow(a *ackInfo, size int) {
	if a.windowEnd >= c.acks.windowTold+uint64(size/16) {
		c.acks.windowTold, c.acks.windowTells = a.windowEnd, 0
	}
	if c.acks.windowTells++; c.acks.windowTells > 3 && !without(WindowOmission) {
		a.windowEnd = 0
	}
}

// AckNow sends an ack at once: for what Note returns now, or because the peer waits for it.
func (e *Endpoint) AckNow(now time.Time) {
	if c := e.current(); c != nil {
		c.scheduleAck(now)
	}
}

// AckEnd is AckNow for the end of the peer's log, behind which the carriers end: the ack goes on their streams too. One
// in a datagram may come when its carrier has ended, and is dropped then.
func (e *Endpoint) AckEnd(now time.Time) {
	e.AckNow(now)
	for _, c := range e.carriers {
		c.greetingDue = true
	}
}

// ackFor returns what this end has to say to the peer on a carrier.
func (e *Endpoint) ackFor(now time.Time, c *carrier) ackInfo {
	return ackInfo{
		received:  e.reorder.Next(),
		consumed:  e.toConsume,
		windowEnd: position(e.reorder.Next(), e.offset) + uint64(e.windowSize-e.held),
		highest:   c.acks.highest,
		delay:     now.Sub(c.acks.highestAt),
		datagrams: c.acks.datagrams,
		backlog:   uint64(e.backlog(c)),
		limited:   e.config.TellLimited && e.Limited(now),
	}
}

// carriesAck reports whether an ack goes with frames that are sent now.
func (e *Endpoint) carriesAck(now time.Time, c *carrier) bool {
	if c.acks.at.IsZero() {
		return e.toConsume != c.acks.sentConsumed
	}
	return c.acks.at.Sub(now) <= keyGap
}

// oweAck schedules an ack for n bytes of new frames, or for a gap.
func (e *Endpoint) oweAck(now time.Time, c *carrier, n int) {
	if c.acks.bytes += n; c.acks.bytes < maxUnacked {
		now = now.Add(e.ackDelay(now, c))
	}
	c.scheduleAck(now)
}

// noteCopy records that a frame has come again. Soon after the highest it is a copy, sent because the
// peer expects loss: then this end does too. Later it says that the peer has had no ack.
func (e *Endpoint) noteCopy(now time.Time, c *carrier, seq uint64) {
	early := now.Sub(c.acks.highestAt) < c.rtt.smoothed/2
	if early && seq == c.acks.highest {
		if c.loss.measured() && c.acks.cameOnce >= minOnce && c.rtt.smoothed >= minLateRTT {
			c.loss.suspect()
		}
		c.acks.cameOnce = 0
	}
	if !early || c.loss.copies() > 2 {
		e.oweAckAgain(now, c)
	}
}

// oweAckAgain schedules an ack for a frame that has come again: the ack before may be lost, or on its way.
func (e *Endpoint) oweAckAgain(now time.Time, c *carrier) {
	if without(CopyAcks) {
		c.scheduleAck(now)
		return
	}
	c.acks.soon, c.acks.duplicateAt = true, now
	at := now.Add(shortAckDelay)
	if next := c.acks.sentAt.Add(c.rtt.smoothed * 11 / 10); at.Before(next) {
		at = next // until then more copies are on their way
	}
	c.scheduleAck(at)
	if e.acked < e.log.Next() && now.Sub(c.tail.sentAt) > c.rtt.smoothed {
		c.tail.resendAt = earlier(c.tail.resendAt, at) // the frames beside that ack have not arrived either
	}
}

// ackDelay returns how long an ack may wait for a frame that shares its datagram.
func (e *Endpoint) ackDelay(now time.Time, c *carrier) time.Duration {
	if now.Before(c.grid.asksUntil) {
		return c.grid.asksUntil.Sub(now) // an ack of its own would tell that there was a key
	}
	if !e.config.DelayAcks || without(AckDelays) || c.acks.soon ||
		now.Sub(c.acks.duplicateAt) <= duplicateMemory || now.Sub(c.acks.bulkAt) <= bulkMemory {
		return shortAckDelay
	}
	return c.loss.ackDelay()
}

// ackDelay returns how long the acks of what a person types may wait on a path.
func (l *loss) ackDelay() time.Duration {
	switch l.copies() {
	case 1:
		return longAckDelay
	case 2:
		return keyGap
	}
	return shortAckDelay
}

// scheduleAck makes the carrier send an ack at the given time or before.
func (c *carrier) scheduleAck(at time.Time) { c.acks.at = earlier(c.acks.at, at) }

// handleAck handles an ack that came over a carrier.
func (e *Endpoint) handleAck(now time.Time, c *carrier, a ackInfo) error {
	if a.received > e.log.Next() || a.highest >= e.log.Next() {
		return protocolErrorf("ack of frames up to %d and %d, with %d never sent",
			a.received-1, a.highest, e.log.Next())
	}
	news := a.received > e.acked || a.consumed > e.consumed
	if news {
		e.unackedSince = now
	}
	e.acked = max(e.acked, a.received)
	e.consumed = max(e.consumed, a.consumed)
	e.windowEnd = max(e.windowEnd, min(a.windowEnd, maxNumber))
	if e.acked == e.log.Next() {
		e.unackedSince = time.Time{}
	}
	if news {
		for _, other := range e.carriers {
			other.forgetSkipped(e.acked)
			other.out.missed = trim(other.out.missed, e.acked)
			e.noteArrivals(now, other)
		}
	}

	c.ready = true
	c.out.acked = max(c.out.acked, a.highest+1)
	if e.noteArrivals(now, c) && !e.unackedSince.IsZero() {
		e.unackedSince = now // if others are late, only their carriers are
	}
	c.peerBacklog = a.backlog
	if a.limited {
		e.peerLimitedAt = now
	}
	late, long := max(c.rtt.smoothed*7/4, c.rtt.timeout()), c.rtt.smoothed >= minLateRTT
	if sample := c.rtt.acked(now, a.highest, a.delay); sample > 0 {
		c.cwnd.addRTT(now, sample, c.rtt.smoothed)
		if !e.config.PeerDelaysAcks {
			sample += a.delay // one that comes late for that may be the second: the first was lost
		}
		if long && sample > late {
			c.loss.suspect()
		}
	}
	c.loss.acked(now, a.datagrams, c.rtt.smoothed)
	if c.role == roleWhole {
		e.lastPath.smoothed, e.lastPath.variation, e.lastPath.loss = c.rtt.smoothed, c.rtt.variation, c.loss.rate()
		e.lastPath.sendWindow, e.lastPath.minRTT = c.cwnd.target(), c.cwnd.minRTT()
	}
	if news {
		c.tail.pingBytes = 0
		c.restartProbes(now)
	}
	c.cwnd.acked(now, max(a.highest, e.acked-1), c.out.delivered, c.out.writing)
	e.noteRelief(c)
	return nil
}
