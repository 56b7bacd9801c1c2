package session

import "time"

const (
	// assumedRTT is the round trip that resends assume before one is measured.
	assumedRTT = 100 * time.Millisecond

	// firstCopy is when a datagram is sent again if loss is expected: soon, but not so
	// soon that one burst of loss takes both.
	firstCopy = 6 * time.Millisecond

	// minResend and maxResend bound the time between two resends: the first so that two
	// are not lost together, the second so that a dead path costs little.
	minResend = 10 * time.Millisecond
	maxResend = time.Second

	// eagerResends is how many resends are sent within round trips, before their
	// intervals double. It is cleanResends on a path that has lost nothing: this is an outage then.
	eagerResends = 12
	cleanResends = 4
)

// heavyIntervals are the times between copies under heavy loss, in round trips, after
// the first copy. The datagram and four copies are sent before the first ack can come:
// with fewer, at 29 % loss each way, more than one key in a hundred would wait for
// another round trip. The next copy waits until acks of all of them are overdue: few need it,
// and many would pay.
var heavyIntervals = []float64{0.18, 0.24, 0.32, 1.2, 0.6}

// overdueAfter returns after how long the ack of what is sent now is overdue, while little is
// lost.
func (e *Endpoint) overdueAfter(c *carrier) time.Duration {
	d := min(c.rtt.timeout(), maxResend)
	switch {
	case !e.peerDelaysAcks || without(LongAckDelay) && without(LossyAckDelay):
		return d
	case without(LongAckDelay):
		return d + lossyAckDelay
	case c.loss.rate() < lightLoss:
		return d + longAckDelay
	}
	return d + lossyAckDelay
}

// resendAfter returns how long to wait for an ack before the tail is sent again. Without
// loss that is until the ack is overdue. With heavy loss the first copies are early, so
// that a key and its echo wait for few of them.
func (e *Endpoint) resendAfter(c *carrier) time.Duration {
	loss, rtt := c.loss.rate(), c.rtt.smoothed
	if rtt == 0 {
		rtt = assumedRTT
	}
	if !c.heard && !without(EagerFirst) { // the path may be dead, whatever the loss on the last one
		return min(firstCopy<<min(c.unheardSends-1, 10), maxResend)
	}
	switch {
	case without(FirstCopy) && c.resends == 0:
		return e.overdueAfter(c)
	case loss < lightLoss && c.resends == 0, loss < mediumLoss && c.resends == 1:
		return e.overdueAfter(c)
	case c.resends == 0:
		return firstCopy
	}
	d := rtt / 4 // the ack is overdue
	switch {
	case !without(MediumCopies) && loss >= mediumLoss && loss < heavyLoss && c.resends == 1:
		d = minResend
	case !without(MediumCopies) && loss >= mediumLoss && loss < heavyLoss && c.resends == 2:
		d = c.rtt.timeout()
	case !without(HeavyCopies) && loss >= heavyLoss:
		d = time.Duration(float64(rtt) * heavyIntervals[min(c.resends, len(heavyIntervals))-1])
	}
	d = max(d, minResend)
	eager := eagerResends
	if !without(CleanResends) && loss < lightLoss {
		eager = cleanResends
	}
	for n := eager; n < c.resends && d < maxResend; n++ {
		d *= 2
	}
	return min(d, maxResend)
}

// maxStuckTail is how many datagrams a tail may take while the stream is stuck.
const maxStuckTail = 4

// resendStuck sends the tail again if its ack is overdue: something has arrived, so the path works
// again. What was lost on the stream is stuck until the transport finds that out as well, a round trip
// later. What follows is sent in datagrams until the peer has it.
func (e *Endpoint) resendStuck(now time.Time, c *carrier) {
	if without(ResendStuck) {
		return
	}
	overdue := !e.unackedSince.IsZero() && now.Sub(e.unackedSince) > e.overdueAfter(c)
	if overdue && e.acked < c.firstUnsent() && now.Sub(c.tailSentAt) > c.rtt.smoothed {
		c.stuckBelow = c.firstUnsent()
		c.resendAt, c.probeAt, c.tailSentAt = now, now, now // a probe, too, is sent once a round trip
	}
}

// stuck reports whether frames that the peer does not have are stuck on a stream.
func (e *Endpoint) stuck(c *carrier) bool { return e.acked < c.stuckBelow }
