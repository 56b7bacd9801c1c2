package session

import "time"

const (
	// initialTrip is the round trip that resends are made for before it is known.
	initialTrip = 100 * time.Millisecond

	// firstCopy is when a datagram is sent again where loss is expected: soon,
	// but not so soon that what has taken the first takes both.
	firstCopy = 6 * time.Millisecond

	// minResend and maxResend bound the time between two resends: the first
	// so that two are not lost together, the second so that a dead path costs
	// little.
	minResend = 10 * time.Millisecond
	maxResend = time.Second

	// eagerResends is how many resends go within round trips, before they get
	// rarer.
	eagerResends = 12
)

// heavyPauses are the times between copies where much is lost, in round trips,
// after the first two. So five go before the first ack can come: with fewer, at 29 %
// lost each way, more than a key in a hundred would wait for another round trip. The
// next one waits until that ack is overdue.
var heavyPauses = []float64{1.0 / 6, 1.0 / 4, 1.0 / 4, 1.0 / 2, 2.0 / 5}

func (p *Peer) appendTail(now time.Time, b []byte, c *carrier) []byte {
	start := len(b)
	for seq := p.acked; seq < p.log.Next(); {
		var frames []byte
		frames, seq = p.log.Slice(seq, c.maxDatagram)
		b = append(b, frames...)
	}
	if p.log.Next() > c.sent() {
		c.resends = 0
		c.rtt.start(now, p.log.Next()-1)
	} else {
		c.resends++
		c.rtt.resent()
		p.counters.Resends++
		p.counters.ResentBytes += uint64(len(b) - start)
	}
	c.tail, c.tailAt = p.log.Next(), now
	p.sent = max(p.sent, c.tail)
	c.resendAt = now.Add(p.resendAfter(c))
	if !c.heard {
		c.resendAt = now.Add(min(firstCopy<<c.tries, maxResend))
		c.tries = min(c.tries+1, 10)
	}
	return b
}

// resendAfter returns how long to wait for an ack before the next resend. Where
// nothing is lost, that is until it is overdue. Where much is, the first copies
// come early: a key and its echo are to need few of them.
func (p *Peer) resendAfter(c *carrier) time.Duration {
	lost, trip := c.loss.rate(), c.rtt.smoothed
	if trip == 0 {
		trip = initialTrip
	}
	if c.resends == 0 && lost < lightLoss {
		d := c.rtt.timeout()
		if p.patient {
			d += lazyAck
		}
		return d
	}
	if c.resends == 0 {
		return firstCopy
	}
	d := trip / 4 // it is overdue
	switch {
	case lost >= lightLoss && lost < heavyLoss && c.resends == 1:
		d = minResend
	case lost >= lightLoss && lost < heavyLoss && c.resends == 2:
		d = c.rtt.timeout()
	case lost >= heavyLoss:
		d = time.Duration(float64(trip) * heavyPauses[min(c.resends, len(heavyPauses))-1])
	}
	d = max(d, minResend)
	for n := eagerResends; n < c.resends && d < maxResend; n++ {
		d *= 2
	}
	return min(d, maxResend)
}
