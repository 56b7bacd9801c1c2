package session

import (
	"math"
	"time"
)

const (
	// firstCopy is the time from a datagram to its first copy, where loss is seen: longer than shortAckDelay, so that
	// the ack of what has arrived soon makes copies needless on a short path, and short beside any round trip that a
	// person feels. The time to the next copy doubles, so that few bursts of loss take all of them.
	firstCopy = 6 * time.Millisecond

	// maxCopies is how often a datagram goes within a round trip at most: what a loss of 50 % needs.
	maxCopies = 8

	// allLost is the share of tails of which all copies may be lost: 99 % of keys and their echoes need no second round
	// trip then.
	allLost = 1.0 / 150

	// maxResend is the longest time between two resends: a dead path costs little then, and one that works again is
	// known soon enough.
	maxResend = time.Second
)

// copies returns how often a tail goes within one round trip, so that not all of it is lost.
func (l *loss) copies() int {
	rate := l.rate()
	if rate < lightLoss || without(Copies) {
		return 1
	}
	return min(max(2, int(math.Ceil(math.Log(allLost)/math.Log(rate)))), maxCopies)
}

// overdueAfter returns after how long the ack of what is sent now is overdue.
func (e *Endpoint) overdueAfter(c *carrier) time.Duration {
	d := min(c.rtt.timeout(), maxResend)
	if e.peerDelaysAcks {
		d += c.loss.ackDelay()
	}
	return d
}

// resendAfter returns how long to wait for an ack before the tail is sent again. As many copies as the loss needs go within
// a round trip. Then one goes each time the ack is overdue, each time twice as late. That is a quarter of a round trip
// later than for a frame that goes once: the peer lets that much time pass between acks of copies.
func (e *Endpoint) resendAfter(c *carrier) time.Duration {
	copies := c.loss.copies()
	if c.resends < copies-1 {
		return min(firstCopy<<c.resends, max(c.rtt.timeout()/4, firstCopy))
	}
	overdue := e.overdueAfter(c) + c.rtt.smoothed/4
	return min(overdue<<min(c.resends+1-copies, 10), max(maxResend, overdue))
}
