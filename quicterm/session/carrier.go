package session

import (
	"maps"
	"slices"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

// A carrier is what an endpoint knows of one of its carriers.
type carrier struct {
	id            CarrierID
	maxDatagram   int    // bytes in a datagram, 0 if there are none
	role          byte   // at this end
	roleDue       bool   // the peer is not told of it yet
	ready         bool   // frames of the log may be sent
	greetingDue   bool   // the ack that begins the stream is not sent yet
	unsentNotices []byte // encoded, for the stream

	out     outStream
	gap     *outgoingGap   // that is being sent, or was before another carrier brought more
	skipped []skippedRange // that the stream left out, and the peer may not know of
	tail    tail
	ping    pingState
	probe   probe
	acks    acks
	grid    grid
	loss    loss // of datagrams
	rtt     rtt
	cwnd    cwnd

	heardAt     time.Time // when a frame came over it last, or zero
	peerBacklog uint64    // bytes of frames that the peer has not sent on it
	parts       []byte    // of a snapshot whose gap has not come
	unkeptBytes int       // received and not kept, that the next kept frame may pin
}

// Up adds a carrier with datagrams of at most maxDatagram bytes, or without any if that is 0. If ready is false, the
// endpoint sends no frames of the log on it before it has heard what the peer has.
func (e *Endpoint) Up(now time.Time, maxDatagram int, ready bool) CarrierID {
	e.lastID++
	c := &carrier{
		id:          e.lastID,
		maxDatagram: maxDatagram,
		ready:       ready,
		greetingDue: true,
		out:         outStream{cursor: e.acked, acked: e.acked},
		tail:        tail{cursor: e.acked},
	}
	c.loss.suspectUntil = firstSpan
	c.restartProbes(now)
	// Until its path is measured, it is taken for one like the last.
	c.rtt.smoothed, c.rtt.variation = e.lastPath.smoothed, e.lastPath.variation
	c.loss.expected, c.cwnd.initial = unknownLoss, initialCwnd
	if e.lastPath.smoothed > 0 {
		c.loss.expected = max(e.lastPath.loss, lightLoss)
		c.cwnd.initial = min(initialCwnd, e.lastPath.sendWindow)
		c.cwnd.previousMin = e.lastPath.minRTT
	}
	if without(ExpectedLoss) {
		c.loss.expected, c.loss.suspectUntil = 0, 0
	}
	for _, f := range e.notices {
		c.unsentNotices = buffer.AppendFrame(c.unsentNotices, f)
	}
	e.carriers[e.lastID] = c
	return e.lastID
}

// StandBy sends only pings on a carrier from now on. The peer sends no frames of its log on it
// either, because it waits for our ack. If it has had one, it is told so.
func (e *Endpoint) StandBy(now time.Time, id CarrierID) {
	c := e.carriers[id]
	if c == nil || c.role != roleWhole {
		return
	}
	c.role = roleStandBy
	if !c.greetingDue {
		c.greetingDue, c.roleDue = true, true
		e.ackElsewhere(now, c)
	}
}

// Activate ends StandBy.
func (e *Endpoint) Activate(now time.Time, id CarrierID) {
	if c := e.carriers[id]; c != nil && c.role == roleStandBy {
		c.role, c.roleDue = roleWhole, false
		c.restartProbes(now)
	}
}

// Down removes a carrier.
func (e *Endpoint) Down(now time.Time, id CarrierID) {
	c := e.carriers[id]
	delete(e.carriers, id)
	if c != nil {
		e.abandon(c)
	}
	e.ackElsewhere(now, c)
}

// ackElsewhere sends acks on all carriers but one, whose last acks may be lost.
func (e *Endpoint) ackElsewhere(now time.Time, without *carrier) {
	for _, c := range e.carriers {
		if c != without {
			c.scheduleAck(now)
		}
	}
}

// Ping sends a ping that keeps a carrier's path open and shows that it is. A datagram is acknowledged by the
// transport below; without datagrams, the ping asks the peer for an ack. The tail that waits for its ack goes with
// the ping, if it is short or not many long ones went with others: if that arrives, nothing else has to.
func (e *Endpoint) Ping(id CarrierID) {
	c := e.carriers[id]
	if c == nil {
		return
	}
	c.ping.due = true
	if without(PingTails) || e.acked == e.log.Next() || c.tail.resendAt.IsZero() || !e.tailFits(c) {
		return
	}
	if size := e.log.Size(e.acked); size > maxPingTail {
		if c.tail.pingBytes += size; c.tail.pingBytes > maxPingTails {
			return
		}
	}
	c.tail.resendAt = c.tail.sentAt
}

// AskAck asks the peer for an ack, on the carrier that is used now.
func (e *Endpoint) AskAck() {
	if c := e.current(); c != nil {
		c.ping.due, c.ping.asks = true, true
	}
}

// DatagramReceived counts a datagram that came over a carrier.
func (e *Endpoint) DatagramReceived(id CarrierID) {
	if c := e.carriers[id]; c != nil {
		c.acks.datagrams++
	}
}

// Path returns what is known of a carrier's path: the shortest round-trip time recently, and the rate at which it
// delivered recently, in bytes of the log per second. Each is 0 while it is unknown.
func (e *Endpoint) Path(id CarrierID) (rtt time.Duration, rate float64) {
	c := e.carriers[id]
	if c == nil {
		return 0, 0
	}
	return c.cwnd.minRTT(), c.cwnd.rate()
}

// Rate returns the rate at which the best carrier delivered recently, in bytes of the log per
// second, or 0 while none is known.
func (e *Endpoint) Rate() (best float64) {
	for _, c := range e.carriers {
		best = max(best, c.cwnd.rate())
	}
	return best
}

// Loss returns the part of the datagrams on a carrier that the network has lost on their way to the peer, lately or
// since the carrier began, if enough were sent to tell.
func (e *Endpoint) Loss(id CarrierID) (share float64, known bool) {
	c := e.carriers[id]
	if c == nil {
		return 0, false
	}
	return c.loss.share()
}

// BestRTT returns the shortest smoothed round-trip time of the carriers, including
// the time that the peer takes for its ack, or 0 while none is known.
func (e *Endpoint) BestRTT() time.Duration {
	var best time.Duration
	for _, c := range e.carriers {
		if d := c.rtt.smoothed; d > 0 && (best == 0 || d < best) {
			best = d
		}
	}
	return best
}

// current returns the carrier that brought the last frame. If that has ended or stands by, it
// is the oldest that carries the whole log, or nil.
func (e *Endpoint) current() *carrier {
	if c := e.carriers[e.lastHeard]; c != nil && c.role == roleWhole {
		return c
	}
	for _, id := range slices.Sorted(maps.Keys(e.carriers)) {
		if c := e.carriers[id]; c.role == roleWhole {
			return c
		}
	}
	return nil
}

// firstUnsent returns the first frame that has not been sent on this carrier.
func (c *carrier) firstUnsent() uint64 { return max(c.out.cursor, c.tail.cursor) }
