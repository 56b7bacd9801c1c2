package session

import (
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A streamStep is what a carrier's stream sends next.
type streamStep int

const (
	streamIdle    streamStep = iota
	streamBlocked            // frames wait for the congestion window or the flow-control window
	streamPing
	streamTick
	streamRole
	streamDead // a bulk carrier is
	streamAck
	streamNotices
	streamGap
	streamAged
	streamFrames
)

// Stream returns the bytes to write next to a carrier's stream, about limit at most, or nil if there is nothing to
// write now. The caller must write all of them before it asks again, and must not change them.
func (e *Endpoint) Stream(now time.Time, id CarrierID, limit int) []byte {
	c := e.carriers[id]
	if c == nil {
		return nil
	}
	b := e.stream(now, c, limit)
	c.out.writing = b != nil
	return b
}

func (e *Endpoint) stream(now time.Time, c *carrier, limit int) []byte {
	c.out.writing = false
	switch step, space := e.nextStreamStep(now, c); step {
	case streamBlocked:
		c.cwnd.noteUse(space, c.cwnd.size(now))
		if space <= 0 {
			e.noteLimited(now)
		}
	case streamRole:
		c.roleDue = false
		return buffer.AppendFrame(nil, buffer.Frame{Type: role, Payload: []byte{c.role}})
	case streamDead:
		e.bury(now)
		return e.appendStreamPing(nil, c) // what others have brought of it is known then
	case streamPing:
		return e.appendStreamPing(nil, c)
	case streamTick:
		return e.streamTick(now, c, limit)
	case streamAck:
		c.greetingDue = false
		return e.appendAck(now, nil, c)
	case streamNotices:
		b := c.unsentNotices
		c.unsentNotices = nil
		return b
	case streamGap:
		return e.sendGap(now, c, limit)
	case streamAged:
		c.out.aged = e.agedFrom(now, c.out.aged)
		return appendAged(nil, c.out.aged)
	case streamFrames:
		sendsTail := e.tailFits(c) && e.tailOnStream(now, c)
		b := e.sendFrames(now, c, space, limit)
		from, to := e.nextOnStream(c)
		if waits := from < to && e.fits(c, from); waits || c.cwnd.limited { // the owner appends what there is room for
			e.noteLimited(now)
		}
		if (c.maxDatagram == 0 || sendsTail) && e.carriesAck(now, c) || e.config.Note != nil && c.out.cursor == e.log.Next() {
			b = append(e.appendAck(now, nil, c), b...) // one write, and a packet less
		}
		return b
	}
	return nil
}

// nextStreamStep returns what a carrier's stream sends next and, for frames, the space in
// the congestion window. It changes nothing.
func (e *Endpoint) nextStreamStep(now time.Time, c *carrier) (step streamStep, space int) {
	pingDue := c.ping.due && c.maxDatagram == 0
	switch {
	case c.roleDue:
		return streamRole, 0
	case pingDue && (c.role == roleStandBy || !c.greetingDue):
		return streamPing, 0
	case c.role == roleStandBy || c.role == roleDead:
		return streamIdle, 0
	case !c.greetingDue && e.obscuresStream(now, c):
		if due(now, e.tick(c)) {
			return streamTick, 0
		}
		return streamIdle, 0
	case c.greetingDue || due(now, e.streamAckTime(c)):
		return streamAck, 0
	case c.unsentNotices != nil:
		return streamNotices, 0
	case due(now, e.deathTime(c)):
		return streamDead, 0
	}
	from, to := e.nextOnStream(c)
	switch {
	case !c.ready || from >= to || e.tailFits(c) && !e.tailOnStream(now, c):
		return streamIdle, 0
	case e.gapIsDue(c, from):
		return streamGap, 0
	case from < e.First(): // waits for a snapshot, which says nothing about the path
		return streamIdle, 0
	}
	space = c.cwnd.size(now) - e.inFlight(c)
	if space <= 0 || from >= e.endOfAhead() || !e.fits(c, from) {
		return streamBlocked, space
	}
	if e.agedFrom(now, max(from, c.out.aged)) > 0 {
		return streamAged, 0
	}
	return streamFrames, space
}

func (e *Endpoint) streamTime(now time.Time, c *carrier) time.Time {
	switch step, _ := e.nextStreamStep(now, c); step {
	case streamBlocked:
		at := e.idleStreamTime(now, c)
		if now.Before(c.cwnd.drainUntil) { // the congestion window grows then
			at = earlier(at, c.cwnd.drainUntil)
		}
		return at
	case streamIdle:
		switch {
		case c.role == roleStandBy || c.role == roleDead:
			return time.Time{}
		case e.obscuresStream(now, c):
			return e.tick(c)
		case e.obscures(now, c): // then the tail may go on the stream again
			return earlier(e.idleStreamTime(now, c), e.obscure.until)
		}
		return e.idleStreamTime(now, c)
	}
	return now
}

// idleStreamTime returns when a stream that has no frames to send has something else, or zero.
func (e *Endpoint) idleStreamTime(now time.Time, c *carrier) time.Time {
	return earlier(e.streamAckTime(c), e.deathTime(c))
}

// streamAckTime returns when to send an ack on a carrier's stream, or zero: because there
// are no datagrams, or because of a long backlog.
func (e *Endpoint) streamAckTime(c *carrier) time.Time {
	at := e.backlogTime(c)
	if c.maxDatagram == 0 {
		at = earlier(at, c.acks.at)
	}
	return at
}

// sendFrames returns the next frames, as both windows allow; space is that of the congestion window.
func (e *Endpoint) sendFrames(now time.Time, c *carrier, space, limit int) []byte {
	from, to := e.nextOnStream(c)
	to = min(to, e.endOfAhead())
	b, next := e.log.Slice(from, min(limit, space, e.windowSpace(from, e.skippedInWindow(c)), e.span(from, to)))
	tail := e.tailFits(c) && e.tailOnStream(now, c)
	w := e.source(c)
	again := len(w.out.missed) > 0 // a bulk carrier may have delivered them
	w.sent(next)
	if len(c.out.flight) == 0 {
		c.out.progressAt = now
	}
	fresh := from >= c.out.top && !again
	c.out.put(run{from: from, to: next})
	e.firstUnsent = max(e.firstUnsent, next)
	if fresh {
		c.rtt.start(now, next-1)
	}
	if fresh && !tail { // what a person types shows no rate
		c.cwnd.sent(now, next-1, c.out.delivered)
	}
	c.cwnd.noteUse(space-len(b), c.cwnd.size(now))
	c.tail.resends, c.tail.sentAt = 0, now
	c.tail.resendAt = now.Add(e.overdueAfter(c))
	c.delayProbe(now)
	return b
}
