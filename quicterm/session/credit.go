package session

import "time"

const (
	// initialCredit is what is sent before anything is known of a path: 32
	// packets of 1 KiB, as much as QUIC begins with.
	initialCredit = 32 << 10

	// minCredit is about three packets. With less, a path would be idle between
	// an ack and what it allows.
	minCredit = 3600

	// maxCredit is what the fastest and longest paths take.
	maxCredit = 4 << 20

	// rateSamples is over how many of the last samples, about one for each round
	// trip, the best delivery rate is taken.
	rateSamples = 8

	// leastFor is how long the shortest round trip counts at least: the path may
	// have become longer. While a new one is measured, less is sent.
	leastFor = 15 * time.Second

	// leastFirst is the same for the first time: what has piled up in an outage
	// comes at once, and hides how short the path is, and that may not be like the
	// last one.
	leastFirst = 250 * time.Millisecond
)

// A credit limits what is under way on a carrier's stream, so that a flood fills
// the path and leaves no long queue in the network: what is typed then would wait
// behind it. It is 1.25 times what the path delivered at best in its shortest
// round trip and the time that acks may wait, as BBR has it (draft-ietf-ccwg-bbr):
// a little more than it holds, and twice that while the rate grows.
type credit struct {
	initial int // before anything is known

	rates  [rateSamples]float64 // bytes per second
	next   int
	sample struct { // what is being measured, if seq is not 0
		seq       uint64 // until this frame is acknowledged
		delivered uint64 // bytes, when it was sent
		at        time.Time
	}
	limited bool // there was more to send than was allowed, in this sample
	grows   bool // the last sample was better than those before

	least, before time.Duration // the shortest round trips now, and before: first that of the last path
	turned        time.Time     // when now began
	settled       bool          // it was not the first time
	drained       time.Time     // until when little is sent: what queues in the network leaves it
}

// trip takes note of a round trip, and of what they usually take.
func (c *credit) trip(now time.Time, rtt, usual time.Duration) {
	span := leastFirst
	if c.settled {
		span = leastFor
	}
	switch {
	case c.turned.IsZero():
		c.least, c.turned = rtt, now
	case now.Sub(c.turned) > span:
		c.before, c.least, c.turned, c.settled = c.least, rtt, now, true
		c.drained = now.Add(min(rtt, usual) * 5 / 4) // it may have been an outage
	}
	c.least = min(c.least, rtt)
}

// shortest returns the shortest round trip, or 0 if none is known.
func (c *credit) shortest() time.Duration {
	if c.least == 0 || c.before == 0 {
		return max(c.least, c.before)
	}
	return min(c.least, c.before)
}

// rate returns the best rate of the last samples, 0 if there are none.
func (c *credit) rate() (best float64) {
	for _, r := range c.rates {
		best = max(best, r)
	}
	return best
}

// limit returns how many bytes may be under way.
func (c *credit) limit(now time.Time) int {
	rate := c.rate()
	if rate == 0 {
		return c.initial
	}
	if now.Before(c.drained) {
		return minCredit
	}
	gain := 1.25
	if c.grows {
		gain = 2
	}
	n := gain * rate * (c.shortest() + ackDelay).Seconds()
	return int(max(min(n, maxCredit), minCredit))
}

// sent takes note that frames up to seq were sent, when so many bytes had been
// delivered.
func (c *credit) sent(now time.Time, seq, delivered uint64) {
	if c.sample.seq == 0 {
		c.sample.seq, c.sample.delivered, c.sample.at = seq, delivered, now
		c.limited = false
	}
}

// forget gives up what is being measured.
func (c *credit) forget() { c.sample.seq = 0 }

// delivered takes word that frames up to seq have arrived, so many bytes.
func (c *credit) delivered(now time.Time, seq, delivered uint64) {
	if c.sample.seq == 0 || seq < c.sample.seq {
		return
	}
	took := now.Sub(c.sample.at)
	rate := float64(delivered-c.sample.delivered) / max(took, time.Microsecond).Seconds()
	c.sample.seq = 0
	c.grows = rate > 1.1*c.rate()
	if c.limited || rate > c.rate() { // or else there was just nothing to send
		c.rates[c.next] = rate
		c.next = (c.next + 1) % rateSamples
	}
}
