package session

import (
	"time"
)

// Datagram appends to b the datagram to send next on a carrier and returns the longer
// slice, or nil if there is nothing to send now. An ack that is due in more than keyGap waits for
// a later one, except beside the tail if there are notes.
func (e *Endpoint) Datagram(now time.Time, id CarrierID, b []byte) []byte {
	c := e.carriers[id]
	if c == nil || c.maxDatagram == 0 || c.role == roleStandBy && !c.ping.due {
		return nil
	}
	if c.role == roleStandBy {
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
	if !request && !c.ping.due && !due(now, c.acks.at) {
		return nil
	}
	c.loss.sent(now)
	sendsTail := request && what == requestTail
	if e.carriesAck(now, c) || sendsTail && e.config.Note != nil {
		b = e.appendAck(now, b, c)
	}
	if request && what == requestProbe || c.ping.due {
		b = e.appendPing(now, b, c, request && what == requestProbe)
	}
	if sendsTail {
		b = e.appendTail(now, b, c)
	}
	return b
}

func (e *Endpoint) datagramTime(now time.Time, c *carrier) time.Time {
	switch {
	case c.maxDatagram == 0:
		return time.Time{}
	case e.obscures(now, c):
		return e.tick(c)
	case c.ping.due:
		return now
	case c.role == roleStandBy:
		return time.Time{}
	}
	at, _ := e.requestTime(now, c)
	return earlier(c.acks.at, at)
}

// A request is what a datagram carries to get an ack.
type request int

const (
	requestTail  request = iota // all frames that are not acknowledged
	requestProbe                // a ping: the tail does not fit, or is received and not consumed
)

// requestTime returns when to send the tail or a probe, or zero while the peer owes no ack.
func (e *Endpoint) requestTime(now time.Time, c *carrier) (at time.Time, what request) {
	switch {
	case !c.ready || c.role != roleWhole || e.consumed == e.log.Next():
		return time.Time{}, requestTail
	case e.acked == e.log.Next() || !e.tailFits(c):
		return c.probe.at, requestProbe
	case e.log.Next() > c.firstUnsent() && e.tailOnStream(now, c):
		return time.Time{}, requestTail
	case e.log.Next() > c.firstUnsent():
		return now, requestTail
	}
	return c.tail.resendAt, requestTail
}
