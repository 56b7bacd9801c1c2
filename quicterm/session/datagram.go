package session

import (
	"math"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// Datagram appends to b the datagram to send next on a carrier and returns the longer
// slice, or nil if there is nothing to send now. An ack that is due in more than ackAhead waits for
// a later one, except beside the tail if there are notes.
func (e *Endpoint) Datagram(now time.Time, id CarrierID, b []byte) []byte {
	c := e.carriers[id]
	if c == nil || c.maxDatagram == 0 || c.standBy && !c.pingDue {
		return nil
	}
	if c.standBy {
		c.loss.sent(now)
		return e.appendPing(now, b, c, false)
	}
	if e.obscures(now, c) {
		if !due(now, e.tick(c)) {
			return nil
		}
		return e.appendTick(now, b, c)
	}
	at, what := e.requestTime(now, c)
	request := due(now, at)
	if !request && !c.pingDue && !due(now, c.ackAt) {
		return nil
	}
	c.loss.sent(now)
	sendsTail := request && what == tail
	if e.carriesAck(now, c) || sendsTail && e.note != nil {
		b = e.appendAck(now, b, c)
	}
	if request && what == probe || c.pingDue {
		b = e.appendPing(now, b, c, request && what == probe)
	}
	if sendsTail {
		b = e.appendTail(now, b, c)
	}
	return b
}

// datagramTime is SendTime for datagrams.
func (e *Endpoint) datagramTime(now time.Time, c *carrier) time.Time {
	switch {
	case c.maxDatagram == 0:
		return time.Time{}
	case e.obscures(now, c):
		return e.tick(c)
	case c.pingDue:
		return now
	case c.standBy:
		return time.Time{}
	}
	at, _ := e.requestTime(now, c)
	return earlier(c.ackAt, at)
}

// A request is what a datagram carries to get an ack.
type request int

const (
	tail  request = iota // all frames that are not acknowledged
	probe                // a ping: the tail does not fit, or is received and not consumed
)

// requestTime returns when to send the tail or a probe, or zero while the peer owes no ack.
func (e *Endpoint) requestTime(now time.Time, c *carrier) (at time.Time, what request) {
	switch {
	case !c.ready || c.stripe || e.consumed == e.log.Next():
		return time.Time{}, tail
	case e.acked == e.log.Next() || !e.tailFits(c):
		return c.probeAt, probe
	case e.log.Next() > c.firstUnsent() && e.tailOnStream(now, c):
		return time.Time{}, tail
	case e.log.Next() > c.firstUnsent():
		return now, tail
	}
	return c.resendAt, tail
}

// tailFits reports whether the tail, all frames that are not acknowledged, fits into one
// datagram, and into the peer's flow-control window.
func (e *Endpoint) tailFits(c *carrier) bool {
	size := e.log.Size(e.acked)
	return !without(TailDatagrams) && c.maxDatagram > 0 && e.acked >= e.first() &&
		size <= e.tailRoom(c) && size <= e.windowSpace(e.acked, 0)
}

// tailRoom returns how many bytes of frames fit into a datagram with an ack, a ping and what is old.
func (e *Endpoint) tailRoom(c *carrier) int {
	return c.maxDatagram - 2*buffer.Overhead - maxAckBytes - MaxNote - pingBytes - e.agedBytes()
}

// tailOnStream reports whether the tail goes on the stream although it fits into a datagram, while
// no loss is seen. QUIC repairs a first loss there, and its acks share the packet whether or not the peer
// permits the claimer's stream (package quic).
func (e *Endpoint) tailOnStream(now time.Time, c *carrier) bool {
	return !without(StreamFirst) && !e.obscures(now, c) && c.heard && c.loss.rate() < lightLoss && len(c.skipped) == 0 && c.gap == nil
}

// appendTail appends the tail to a datagram, and schedules when to send it again.
func (e *Endpoint) appendTail(now time.Time, b []byte, c *carrier) []byte {
	start, seq := len(b), e.acked
	fresh := e.log.Next() > c.firstUnsent()
	if fresh && e.obscures(now, c) && c.loss.rate() < lightLoss {
		seq = max(seq, c.firstUnsent())
	}
	if next := e.agedFrom(now, seq); next > 0 {
		b = appendAged(b, next)
	}
	for seq < e.log.Next() {
		var frames []byte
		frames, seq = e.log.Slice(seq, math.MaxInt)
		b = append(b, frames...)
	}
	if fresh {
		c.resends = 0
		c.rtt.start(now, seq-1)
	} else {
		c.resends++
		c.rtt.resent()
		e.counters.Resends++
		e.counters.ResentBytes += uint64(len(b) - start)
	}
	c.datagramCursor, c.tailSentAt = max(c.datagramCursor, seq), now
	e.firstUnsent = max(e.firstUnsent, c.datagramCursor)
	c.resendAt = now.Add(e.resendAfter(c))
	return b
}
