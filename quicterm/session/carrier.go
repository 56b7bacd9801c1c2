package session

import (
	"time"

	"github.com/quicterm/quicterm/buffer"
)

const (
	// initialTimeout is what a first ack may take: twice the round trip of a
	// long path, so that a slow one is not flooded before it is known.
	initialTimeout = 250 * time.Millisecond

	// minVariation keeps timers above the jitter of a busy machine.
	minVariation = 5 * time.Millisecond

	// maxProbe bounds the time between two probes for what has arrived but
	// was not dealt with, as in a stopped terminal.
	maxProbe = 30 * time.Second

	// backlogEvery is how often the other end is told how much it is to get, while
	// that is more than longBacklog.
	backlogEvery = time.Second
	longBacklog  = 64 << 10
)

// A carrier is what a peer knows of one of its carriers.
type carrier struct {
	maxDatagram int    // bytes of a datagram, 0 if there are none
	ready       bool   // sending frames may begin
	greet       bool   // the ack that begins the stream is yet to be sent
	standBy     bool   // nothing but pings is sent
	heard       bool   // something has come over it
	messages    []byte // frames outside the log that wait for the stream

	// Sending.
	cursor    uint64    // the first frame that was not put on the stream
	tail      uint64    // the first frame that was in no datagram
	acked     uint64    // the first frame above all that arrived on this carrier
	holes     []hole    // what was left out, and the other end may not know yet
	left      uint64    // bytes that were left out before
	tailAt    time.Time // when the last one was sent
	resendAt  time.Time // when the tail goes again, if it is not acknowledged
	resends   int       // in a row
	tries     int       // datagrams sent before anything was heard: it may lead nowhere
	probeAt   time.Time // when to ask for an ack, while it matters
	probes    int       // in a row
	keepalive bool      // a ping is to be sent
	rtt       rtt
	loss      loss
	credit    credit

	// Receiving.
	highest  uint64    // frame that arrived on this carrier
	highAt   time.Time // when that was
	got      uint64    // datagrams that did
	owed     int       // bytes received that no ack was sent for
	urgent   bool      // and it is not to wait for long
	doubled  time.Time // when a frame came again
	ackedAt  time.Time // when the last ack was sent
	saidLong bool      // and it told of a long backlog
	ackAt    time.Time // when to send an ack at the latest, or zero
	doneSaid uint64    // the last ack's Consumed
	ballast  int       // bytes of no use, that may stay in memory with the next frame
	backlog  uint64    // bytes of frames that the other end has yet to send
}

// Up adds a carrier with datagrams of at most maxDatagram bytes, or none if
// that is 0. If ready is false, the peer waits to hear what the other end has
// before it sends any frames of the log on it.
func (p *Peer) Up(now time.Time, maxDatagram int, ready bool) CarrierID {
	p.lastID++
	c := &carrier{
		maxDatagram: maxDatagram,
		ready:       ready,
		greet:       true,
		cursor:      p.acked,
		tail:        p.acked,
		acked:       p.acked,
		probeAt:     now.Add(2 * initialTimeout),
	}
	// Until more is known, its path is taken for one like the last.
	c.rtt.smoothed, c.rtt.variation = p.usual.rtt.smoothed, p.usual.rtt.variation
	c.loss.expected, c.credit.initial = heavyLoss, initialCredit
	if p.usual.rtt.smoothed > 0 {
		c.loss.expected = max(p.usual.loss, lightLoss)
		c.credit.initial = min(initialCredit, p.usual.credit)
		c.credit.before = p.usual.shortest
	}
	for _, f := range p.standing {
		c.messages = buffer.AppendFrame(c.messages, f)
	}
	p.carriers[p.lastID] = c
	return p.lastID
}

// StandBy has nothing but pings sent on a carrier that is just up. The other end
// sends no frames of its log on it either, since that waits for our ack.
func (p *Peer) StandBy(id CarrierID) { p.carriers[id].standBy = true }

// Activate ends StandBy.
func (p *Peer) Activate(now time.Time, id CarrierID) {
	if c := p.carriers[id]; c != nil && c.standBy {
		c.standBy = false
		c.probeAt = now.Add(2 * initialTimeout)
	}
}

// Down removes a carrier.
func (p *Peer) Down(now time.Time, id CarrierID) {
	delete(p.carriers, id)
	for _, c := range p.carriers {
		c.scheduleAck(now) // the last ones may have been lost with it
	}
}

// Notify has a notice sent on the streams of all carriers, also of those to come:
// the other end may get it more than once.
func (p *Peer) Notify(code NoticeCode, text string) {
	f := buffer.Frame{Type: notice, Payload: appendNotice(nil, code, text)}
	p.standing = append(p.standing, f)
	for _, c := range p.carriers {
		c.messages = buffer.AppendFrame(c.messages, f)
	}
}

// Ping has a small datagram sent that keeps a carrier's path open. Without a
// datagram lane it does nothing.
func (p *Peer) Ping(id CarrierID) {
	if c := p.carriers[id]; c != nil {
		c.keepalive = true
	}
}

// Path returns what is known of a carrier's path: the shortest round-trip time of
// late, and the rate in bytes of the log per second at which it has delivered of late.
// Each is 0 while it is not known.
func (p *Peer) Path(id CarrierID) (rtt time.Duration, rate float64) {
	c := p.carriers[id]
	if c == nil {
		return 0, 0
	}
	return c.credit.shortest(), c.credit.rate()
}

// Appetite returns how many bytes of frames that are not acknowledged keep the
// best carrier busy. What is more than that waits here, where it can still be
// overtaken. Between carriers, the next one is taken for one like the last.
func (p *Peer) Appetite(now time.Time) int {
	most := max(minCredit, p.usual.credit)
	if len(p.carriers) > 0 {
		most = minCredit
	}
	for _, c := range p.carriers {
		if !c.standBy {
			most = max(most, c.credit.limit(now))
		}
	}
	return most
}

// Outstanding returns how many bytes of frames the other end is to get and has not
// acknowledged.
func (p *Peer) Outstanding() int { return p.log.Size(max(p.acked, p.skipped)) }

// Backlog returns how many bytes of frames the other end had yet to send when it
// said so last, if they are many.
func (p *Peer) Backlog() uint64 {
	if c := p.talking(); c != nil && c.backlog > longBacklog {
		return c.backlog
	}
	return 0
}

// backlog returns how many bytes of frames are yet to be sent on a carrier.
func (p *Peer) backlog(c *carrier) int {
	return p.span(max(c.sent(), p.acked, p.first()), p.log.Next())
}

// Received tells the peer that a datagram came over a carrier.
func (p *Peer) Received(id CarrierID) {
	if c := p.carriers[id]; c != nil {
		c.got++
	}
}

// BestRTT returns the shortest smoothed round-trip time of the carriers, with
// the time that the other end takes for its ack, or 0 before any is known.
func (p *Peer) BestRTT() time.Duration {
	var best time.Duration
	for _, c := range p.carriers {
		if d := c.rtt.smoothed; d > 0 && (best == 0 || d < best) {
			best = d
		}
	}
	return best
}

// Stream returns the bytes to write next to a carrier's stream, which are
// about limit at most, or nil if there is nothing to write now. The caller must
// write all of them before it asks again, and must not change them.
func (p *Peer) Stream(now time.Time, id CarrierID, limit int) []byte {
	c := p.carriers[id]
	if c == nil || c.standBy {
		return nil
	}
	if c.greet || c.maxDatagram == 0 && due(now, c.ackAt) {
		c.greet = false
		return p.appendAck(now, nil, c)
	}
	if b := c.messages; b != nil {
		c.messages = nil
		return b
	}
	if long := p.backlog(c) > longBacklog; c.ready && (long && now.Sub(c.ackedAt) > backlogEvery || c.saidLong && !long) {
		return p.appendAck(now, nil, c)
	}
	from := max(c.cursor, p.acked)
	if !c.ready || from >= p.log.Next() || p.tailFits(c) {
		return nil
	}
	if c.probes == 0 {
		c.probeAt = now.Add(2 * c.rtt.timeout())
	}
	if first := p.first(); from < first {
		if !p.leave(c, from, first) {
			return nil
		}
		c.cursor = first
		info := gapInfo{next: first, offset: p.log.Offset(first)}
		return buffer.AppendFrame(nil, buffer.Frame{Type: gap, Payload: appendGap(nil, info)})
	}
	allowed := c.credit.limit(now)
	credit, room := allowed-p.underWay(c, from), p.room(from, p.leftOut(c))
	c.credit.limited = c.credit.limited || credit <= allowed/8
	if credit <= 0 || room <= 0 {
		return nil
	}
	b, next := p.log.Slice(from, min(limit, credit, room))
	if len(b) > room {
		return nil
	}
	c.cursor = next
	p.sent = max(p.sent, next)
	c.rtt.start(now, next-1)
	if delivered, known := p.delivered(c); known {
		c.credit.sent(now, next-1, delivered)
	}
	c.credit.limited = c.credit.limited || credit-len(b) <= allowed/8
	c.resendAt = now.Add(c.rtt.timeout())
	return b
}

// Datagram appends to b the datagram to send next on a carrier and returns
// the longer slice, or nil if there is nothing to send now.
func (p *Peer) Datagram(now time.Time, id CarrierID, b []byte) []byte {
	c := p.carriers[id]
	if c == nil || c.maxDatagram == 0 || c.standBy && !c.keepalive {
		return nil
	}
	if c.standBy {
		c.loss.send(now)
		return p.appendPing(now, b, c, false)
	}
	fresh := p.log.Next() > c.sent() && (c.heard || c.tries == 0)
	sendTail := c.ready && p.tailFits(c) && p.acked < p.log.Next() && (fresh || due(now, c.resendAt))
	probe := p.probing(c) && due(now, c.probeAt)
	if !sendTail && !probe && !c.keepalive && !due(now, c.ackAt) {
		return nil
	}
	if !c.ackAt.IsZero() || p.done != c.doneSaid {
		b = p.appendAck(now, b, c)
	}
	if probe || c.keepalive {
		b = p.appendPing(now, b, c, probe)
	}
	if sendTail {
		b = p.appendTail(now, b, c)
	}
	c.loss.send(now)
	return b
}

// Deadline returns when Stream or Datagram is to be asked again at the latest,
// or zero if only an event can give them anything to send.
func (p *Peer) Deadline(id CarrierID) time.Time {
	c := p.carriers[id]
	if c == nil || c.standBy {
		return time.Time{}
	}
	at := c.ackAt
	if c.maxDatagram > 0 {
		if c.ready && p.acked < p.log.Next() && p.tailFits(c) {
			at = earlier(at, c.resendAt)
		}
		if p.probing(c) {
			at = earlier(at, c.probeAt)
		}
	}
	return at
}

// tailFits reports whether all that is unacknowledged fits into a datagram,
// with an ack and a ping, and the other end can hold it.
func (p *Peer) tailFits(c *carrier) bool {
	return c.maxDatagram > 0 &&
		p.acked >= p.first() &&
		p.log.Size(p.acked) <= c.maxDatagram-2*buffer.Overhead-maxAckBytes-1 &&
		p.log.Size(p.acked) <= p.room(p.acked, 0)
}

// probing reports whether an ack that is overdue would have to be asked for:
// no resend of the tail will bring it.
func (p *Peer) probing(c *carrier) bool {
	return c.ready && p.consumed < p.log.Next() && (p.acked == p.log.Next() || !p.tailFits(c))
}

// sent returns the first frame that has not been sent on this carrier.
func (c *carrier) sent() uint64 { return max(c.cursor, c.tail) }

// appendPing appends a ping. A probe is one that asks for an ack, because the
// one that would have let the stream go on may have been lost.
func (p *Peer) appendPing(now time.Time, b []byte, c *carrier, probe bool) []byte {
	c.keepalive = false
	flags := []byte{0}
	if probe {
		flags[0] = 1
		c.probes++
		limit := maxResend
		if p.acked == p.log.Next() {
			limit = maxProbe
		}
		c.probeAt = now.Add(min(c.rtt.timeout()<<min(c.probes+1, 16), limit))
	}
	return buffer.AppendFrame(b, buffer.Frame{Type: ping, Payload: flags})
}

// due reports whether a time that is set has come.
func due(now, at time.Time) bool { return !at.IsZero() && !now.Before(at) }

// earlier returns the earlier of two times, of which either may be zero for
// never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
