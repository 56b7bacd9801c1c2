package session

import "time"

// An rtt estimates the round-trip time of a carrier, end to end, from frames
// and their acks, as RFC 6298 does.
type rtt struct {
	smoothed, variation time.Duration // 0 before the first sample

	seq   uint64 // of the frame being timed, 0 for none
	sent  time.Time
	again bool // it was sent more than once
}

// maxGrowth bounds what a sample counts for, in round trips as they were. A path
// that has become longer than that is known after a few samples.
const maxGrowth = 8

// start times the frame seq, unless another is being timed.
func (r *rtt) start(now time.Time, seq uint64) {
	if r.seq == 0 {
		r.seq, r.sent, r.again = seq, now, false
	}
}

// resent notes that the frame being timed was sent again, so an ack could be for
// either (Karn's algorithm). Where much is lost there is no other measure: then
// the time since the first is taken, but what makes the estimate longer counts
// for little.
func (r *rtt) resent() { r.again = true }

// acked takes word that frames up to highest have arrived. It returns how long
// that took for the frame that was timed, or 0.
func (r *rtt) acked(now time.Time, highest uint64) time.Duration {
	if r.seq == 0 || highest < r.seq {
		return 0
	}
	r.seq = 0
	sample := max(now.Sub(r.sent), time.Microsecond) // whatever delay the other end claims
	if r.smoothed == 0 {
		r.smoothed, r.variation = sample, sample/8 // frames are timed exactly
		return sample
	}
	trip := sample
	sample = min(sample, maxGrowth*r.smoothed) // it may have been an outage
	if r.again && sample > r.smoothed {
		r.smoothed += (sample - r.smoothed) / 32
		return trip
	}
	r.variation += ((r.smoothed - sample).Abs() - r.variation) / 4
	r.smoothed += (sample - r.smoothed) / 8
	return trip
}

// timeout is how long an ack may take before something is likely lost.
func (r *rtt) timeout() time.Duration {
	if r.smoothed == 0 {
		return initialTimeout
	}
	return r.smoothed + max(4*r.variation, r.smoothed/10, minVariation) + ackDelay
}
