package session

import (
	"math"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

const (
	// maxCopies is how often a datagram goes within a round trip at most: what a loss of 50 % needs.
	maxCopies = 8

	// allLost is the share of tails of which all copies may be lost: then 99 % of keys and their echoes need no second
	// round trip.
	allLost = 1.0 / 200
)

// A tail is what a carrier knows of the datagrams that carry all frames that are not acknowledged.
type tail struct {
	cursor    uint64    // the first frame that was in none
	sentAt    time.Time // when it was sent last, there or on the stream
	resendAt  time.Time // when it is sent again if it is not acknowledged
	resends   int       // of the same tail
	pingBytes int       // of long tails that went with pings since the last news
}

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
	if e.config.PeerDelaysAcks {
		d += c.loss.ackDelay()
	}
	return d
}

// resendAfter returns how long to wait for an ack before the tail is sent again. As many copies as the loss needs go
// within a round trip. Then one goes each time the ack is overdue, each time twice as late. That is a quarter of a round
// trip later than for a frame that goes once: the peer lets that much time pass between acks of copies.
func (e *Endpoint) resendAfter(c *carrier) time.Duration {
	copies := c.loss.copies()
	if c.tail.resends < copies-1 {
		return min(firstCopy<<c.tail.resends, max(c.rtt.timeout()/4, firstCopy))
	}
	overdue := e.overdueAfter(c) + c.rtt.smoothed/4
	return min(overdue<<min(c.tail.resends+1-copies, 10), max(maxResend, overdue))
}

// tailFits reports whether the tail, all frames that are not acknowledged, fits into one
// datagram, and into the peer's flow-control window.
func (e *Endpoint) tailFits(c *carrier) bool {
	size := e.log.Size(e.acked)
	return !without(TailDatagrams) && c.maxDatagram > 0 && e.acked >= e.First() &&
		size <= c.tailRoom() && size <= e.windowSpace(e.acked, 0)
}

// tailRoom returns how many bytes of frames fit into a datagram with an ack, a ping and what is old.
func (c *carrier) tailRoom() int {
	return c.maxDatagram - 2*buffer.Overhead - maxAckBytes - MaxNote - pingBytes - maxAgedBytes
}

// tailOnStream reports whether the tail goes on the stream although it fits into a datagram, while
// no loss is seen. QUIC repairs a first loss there, and its acks share the packet whether or not the peer
// permits the claimer's stream (package quic).
func (e *Endpoint) tailOnStream(now time.Time, c *carrier) bool {
	return !without(StreamFirst) && !e.obscures(now, c) && !c.heardAt.IsZero() && c.loss.rate() < lightLoss &&
		len(c.skipped) == 0 && c.gap == nil
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
		c.tail.resends = 0
		c.rtt.start(now, seq-1)
	} else {
		c.tail.resends++
		c.rtt.resent()
		e.counters.Resends++
		e.counters.ResentBytes += uint64(len(b) - start)
	}
	c.tail.cursor, c.tail.sentAt = max(c.tail.cursor, seq), now
	e.firstUnsent = max(e.firstUnsent, c.tail.cursor)
	c.tail.resendAt = now.Add(e.resendAfter(c))
	return b
}
