package session

import (
	"encoding/binary"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

const (
	// MaxSnapshot is the size of the largest snapshot in bytes: a screen and thousands of lines.
	MaxSnapshot = 8 << 20

	// maxPart is how many bytes of a snapshot a frame has, so that acks do not wait long between two.
	maxPart = 32 << 10
)

// An outgoingGap is what a carrier's stream sends in place of frames: the parts of a snapshot,
// if there is one, and then the gap.
type outgoingGap struct {
	next, offset uint64
	snapshot     []byte
	sent         int // bytes of the snapshot
}

// newGap returns what to send in place of the frames that cannot be sent any more, or nil if that is not known yet.
// Carriers that begin together send the same snapshot, so that it is made and kept once.
func (e *Endpoint) newGap() *outgoingGap {
	if e.config.Snapshot == nil {
		return &outgoingGap{next: e.First(), offset: e.log.Offset(e.First())}
	}
	var last outgoingGap
	for _, c := range e.carriers {
		if g := c.gap; g != nil && g.next > last.next {
			last = *g
		}
	}
	if last.next >= e.First() && e.span(last.next, e.log.Next()) < len(last.snapshot) {
		last.sent = 0
		return &last
	}
	next, snapshot, ready := e.config.Snapshot()
	if !ready || next < e.First() || next > e.log.Next() {
		e.awaitsSnapshot = true
		return nil
	}
	if len(snapshot) > MaxSnapshot {
		snapshot = nil
	}
	return &outgoingGap{next: next, offset: e.log.Offset(next), snapshot: snapshot}
}

// SnapshotReady reports that [Config.Snapshot], which was not ready, may be now.
func (e *Endpoint) SnapshotReady() { e.awaitsSnapshot = false }

// gapIsDue reports whether a carrier's stream, which continues with the frame from, can send a gap now. A snapshot
// waits until the peer has consumed all before it: a peer that does not read gets the last one, not all of them.
func (e *Endpoint) gapIsDue(c *carrier, from uint64) bool {
	switch {
	case c.gap != nil && from < c.gap.next:
		return true
	case from >= e.First() || len(c.skipped) == maxSkipped:
		return false
	}
	return e.config.Snapshot == nil || !e.awaitsSnapshot && e.consumed >= from
}

// sendGap returns the gap in place of the frames up to the first that can be sent, or the next
// parts of its snapshot, of about limit bytes.
func (e *Endpoint) sendGap(now time.Time, c *carrier, limit int) (b []byte) {
	from, _ := e.nextOnStream(c)
	if c.gap == nil || from >= c.gap.next {
		if c.gap = e.newGap(); c.gap == nil {
			return nil
		}
	}
	g := c.gap
	c.delayProbe(now)
	for g.sent < len(g.snapshot) {
		if len(b) >= limit {
			return b
		}
		part := g.snapshot[g.sent:min(g.sent+maxPart, len(g.snapshot))]
		b = buffer.AppendFrame(b, buffer.Frame{Type: snapshotPart, Payload: appendPart(nil, g.sent, part)})
		g.sent += len(part)
	}
	if from < e.log.First() {
		e.counters.Evicted++
	}
	e.skip(c, from, g.next, len(g.snapshot))
	c.gap = nil
	c.out.cursor, c.out.missed = max(c.out.cursor, g.next), trim(c.out.missed, g.next)
	info := gapInfo{next: g.next, offset: g.offset, snapshot: uint64(len(g.snapshot))}
	return buffer.AppendFrame(b, buffer.Frame{Type: gap, Payload: appendGap(nil, info)})
}

func appendPart(b []byte, offset int, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(offset)), data...)
}

// handlePart keeps a part of a snapshot until the gap comes that it belongs to.
func (e *Endpoint) handlePart(c *carrier, lane Lane, payload []byte) error {
	offset, n := binary.Uvarint(payload)
	data := payload[max(n, 0):]
	switch {
	case !e.config.TakeSnapshots:
		return protocolErrorf("snapshot, which this end does not take")
	case lane != StreamLane:
		return protocolErrorf("part of a snapshot in a datagram")
	case n <= 0:
		return protocolErrorf("part of a snapshot without an offset")
	case offset == 0:
		c.parts = nil // those before were given up
	case offset != uint64(len(c.parts)):
		return protocolErrorf("part of a snapshot at %d, behind %d bytes", offset, len(c.parts))
	}
	held := len(data)
	for _, other := range e.carriers {
		held += len(other.parts)
	}
	if held > MaxSnapshot {
		return protocolErrorf("snapshots of more than %d bytes", MaxSnapshot)
	}
	c.parts = append(c.parts, data...)
	return nil
}

// takeParts returns the snapshot that a gap replaces frames with, of which all parts must have
// come on the same stream.
func (c *carrier) takeParts(lane Lane, total uint64) ([]byte, error) {
	parts := c.parts
	if lane == StreamLane {
		c.parts = nil
	}
	switch {
	case total == 0:
		return nil, nil
	case lane != StreamLane:
		return nil, protocolErrorf("gap with a snapshot in a datagram")
	case total != uint64(len(parts)):
		return nil, protocolErrorf("gap with a snapshot of %d bytes, of which %d have come", total, len(parts))
	}
	return parts, nil
}
