package session

import "time"

// initialTimeout is how long the first ack may take: twice the round trip of a long
// path, so that a slow one is not flooded before it is measured.
const initialTimeout = 250 * time.Millisecond

// minVariation keeps timers above the jitter of a busy machine.
const minVariation = 5 * time.Millisecond

// maxGrowth bounds a sample, in smoothed round trips: it may include an outage. A path that
// has become longer than that is known after a few samples. An estimate that is more than
// this many times longer than a sample is dropped for it.
const maxGrowth = 8

// An rtt estimates the round-trip time of a carrier, end to end, from frames
// and their acks, as RFC 6298 does.
type rtt struct {
	smoothed, variation time.Duration // 0 before the first sample

	seq       uint64 // of the frame being timed, 0 for none
	sentAt    time.Time
	sentAgain bool
}

// start times the frame seq, unless another is being timed.
func (r *rtt) start(now time.Time, seq uint64) {
	if r.seq == 0 {
		r.seq, r.sentAt, r.sentAgain = seq, now, false
	}
}

// resent records that the frame being timed was sent again, so an ack could be for
// either copy (Karn's algorithm). Under heavy loss there is no other measure: then
// the time since the first copy counts, but with little weight if it makes the estimate
// longer.
func (r *rtt) resent() { r.sentAgain = true }

// acked records that frames up to highest have arrived. It returns how long the ack of
// the frame that was timed took, or 0.
func (r *rtt) acked(now time.Time, highest uint64) time.Duration {
	if r.seq == 0 || highest < r.seq {
		return 0
	}
	r.seq = 0
	took := max(now.Sub(r.sentAt), time.Microsecond) // whatever delay the peer claims
	if r.smoothed == 0 || r.smoothed > maxGrowth*took {
		r.smoothed, r.variation = took, took/8 // frames are timed exactly
		return took
	}
	sample := min(took, maxGrowth*r.smoothed)
	if r.sentAgain && sample > r.smoothed {
		r.smoothed += (sample - r.smoothed) / 32
		return took
	}
	r.variation += ((r.smoothed - sample).Abs() - r.variation) / 4
	r.smoothed += (sample - r.smoothed) / 8
	return took
}

// timeout returns how long an ack may take before it is overdue.
func (r *rtt) timeout() time.Duration {
	if r.smoothed == 0 {
		return initialTimeout
	}
	return r.smoothed + max(4*r.variation, r.smoothed/10, minVariation) + shortAckDelay
}
