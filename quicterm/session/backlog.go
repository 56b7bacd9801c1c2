package session

import "time"

// longBacklog is how many unsent bytes the peer is told about.
const longBacklog = 64 << 10

// PeerBacklog returns how many bytes of frames the peer had not sent when it last said so, or 0 if those were few.
func (e *Endpoint) PeerBacklog() uint64 {
	if c := e.current(); c != nil && c.peerBacklog > longBacklog {
		return c.peerBacklog
	}
	return 0
}

// backlog returns how many bytes of frames, and of a snapshot, are not yet sent on a carrier.
func (e *Endpoint) backlog(c *carrier) int {
	snapshot := 0
	if c.gap != nil {
		snapshot = len(c.gap.snapshot) - c.gap.sent
	}
	return snapshot + e.span(max(c.firstUnsent(), e.acked, e.First()), e.log.Next())
}

// backlogTime returns when to send an ack that tells of the backlog, or zero.
func (e *Endpoint) backlogTime(c *carrier) time.Time {
	long := c.ready && e.backlog(c) > longBacklog
	switch {
	case c.role != roleWhole: // others send what it does not
	case long:
		return c.acks.sentAt.Add(backlogInterval)
	case c.ready && c.acks.sentBacklog:
		return c.acks.sentAt // it is over: tell at once
	}
	return time.Time{}
}
