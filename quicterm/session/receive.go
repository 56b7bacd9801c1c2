package session

import (
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// Receive handles a frame that came over a carrier's lane. It keeps the frame's payload
// or a copy of it. After an error, the caller must close the carrier.
func (e *Endpoint) Receive(now time.Time, id CarrierID, lane Lane, f buffer.Frame) error {
	c := e.carriers[id]
	if c == nil {
		return nil // removed meanwhile
	}
	if (f.Seq == 0) != (f.Type >= Unsequenced) {
		return protocolErrorf("frame of type %#x with sequence number %d", f.Type, f.Seq)
	}
	if f.Seq > maxNumber {
		return protocolErrorf("frame %d, above the highest number", f.Seq)
	}
	if f.Type != ping && f.Type != role && c.role == roleWhole {
		e.lastHeard = id
	}
	c.heardAt = now
	c.countUnkept(f)
	switch f.Type {
	case ack:
		a, note, err := parseAck(f.Payload)
		if err != nil {
			return protocolErrorf("%v", err)
		}
		if err := e.handleAck(now, c, a); err != nil {
			return err
		}
		if len(note) > 0 && e.config.TakeNote != nil {
			e.config.TakeNote(a.received, note)
		}
		return nil
	case gap:
		g, err := parseGap(f.Payload)
		if err != nil {
			return protocolErrorf("%v", err)
		}
		return e.handleGap(now, c, lane, g)
	case snapshotPart:
		return e.handlePart(c, lane, f.Payload)
	case ping:
		if len(f.Payload) > 0 && f.Payload[0] != pingPlain {
			c.acks.windowTells = 0
			c.obscured(now, f.Payload[0])
			c.scheduleAck(now)
		}
	case role:
		e.handleRole(c, lane, f.Payload)
	case notice:
		n, err := parseNotice(f.Payload)
		if err != nil {
			return protocolErrorf("%v", err)
		}
		if len(e.inNotices) < maxNotices {
			e.inNotices = append(e.inNotices, n)
		}
	case aged:
		next, err := parseAged(f.Payload)
		if err != nil {
			return protocolErrorf("%v", err)
		}
		e.peerAged = max(e.peerAged, next)
	case Compressed:
		return protocolErrorf("compressed frame in a datagram, in another or without a request")
	}
	if f.Type < Unsequenced {
		return e.handleFrame(now, c, lane, f)
	}
	return nil
}

// Accept takes a frame of the peer's log that no carrier has brought. A carrier may bring it again.
func (e *Endpoint) Accept(f buffer.Frame) {
	e.reorder.Offer(f)
	e.deliver()
}

// handleRole handles what the peer says of the carrier's role.
func (e *Endpoint) handleRole(c *carrier, lane Lane, payload []byte) {
	if lane != StreamLane || len(payload) == 0 {
		return
	}
	switch {
	case payload[0] == roleStandBy: // until there is an ack; what is being measured would show how long that takes
		c.ready = false
		c.rtt.drop()
		c.cwnd.dropSample()
	case payload[0] == roleBulk && !c.ready:
		e.becomeBulk(c)
	}
}

// handleFrame handles a frame of the peer's log.
func (e *Endpoint) handleFrame(now time.Time, c *carrier, lane Lane, f buffer.Frame) error {
	if lane == StreamLane {
		c.parts = nil // the peer has given them up
	}
	next := e.reorder.Next()
	if f.Seq >= next && e.held+frameBytes(f) > e.windowSize {
		return protocolErrorf("frame %d, beyond the flow-control window of %d bytes", f.Seq, e.windowSize)
	}
	if f.Seq >= next {
		f = c.unpin(f)
	}
	verdict := buffer.Beyond
	if lane == StreamLane || f.Seq < next+MaxEarly {
		verdict = e.reorder.Offer(f)
	}
	elsewhere := verdict == buffer.Duplicate && f.Seq > c.acks.highest // another carrier was quicker
	if verdict != buffer.Beyond && f.Seq > c.acks.highest {
		c.acks.highest, c.acks.highestAt = f.Seq, now
	}
	if lane == StreamLane && c.acks.bytes+frameBytes(f) > maxDelayed {
		c.acks.bulkAt = now
	}
	c.acks.soon = c.acks.soon || verdict == buffer.Held
	switch {
	case elsewhere:
		e.oweAckAgain(now, c)
	case verdict == buffer.Duplicate:
		e.noteCopy(now, c, f.Seq)
	default:
		c.acks.cameOnce++
		e.oweAck(now, c, frameBytes(f))
	}
	switch verdict {
	case buffer.Duplicate:
		e.counters.Duplicates++
	case buffer.Held:
		e.counters.Reordered++
	case buffer.Beyond:
		if lane == StreamLane {
			return protocolErrorf("frame %d on a stream, with %d missing", f.Seq, next)
		}
	case buffer.Accepted:
		c.countKept(f)
		e.deliver()
	}
	return nil
}

// handleGap handles the end of a range of the peer's log that will never come.
func (e *Endpoint) handleGap(now time.Time, c *carrier, lane Lane, g gapInfo) error {
	snapshot, err := c.takeParts(lane, g.snapshot)
	if err != nil {
		return err
	}
	if g.next > maxNumber || g.offset > maxNumber {
		return protocolErrorf("gap to frame %d at offset %d, above the highest number", g.next, g.offset)
	}
	from := e.reorder.Next()
	if g.next <= from {
		return nil // another carrier brought it before
	}
	if g.offset < e.offset {
		return protocolErrorf("gap from offset %d back to %d", e.offset, g.offset)
	}
	missing := Gap{From: from, To: g.next - 1, Bytes: g.offset - e.offset, Snapshot: snapshot}
	e.counters.Gaps++
	e.counters.GapFrames += g.next - from
	e.counters.GapBytes += missing.Bytes
	e.deliverGap(missing)
	e.reorder.SkipTo(g.next)
	e.offset = g.offset
	c.acks.highest, c.acks.highestAt = max(c.acks.highest, g.next-1), now
	c.acks.soon = true
	e.oweAck(now, c, 0)
	e.deliver()
	return nil
}
