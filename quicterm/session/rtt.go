package session

import "time"

// maxGrowth bounds a sample, in smoothed round trips: it may include an outage. A path that
// has become longer than that is known after a few samples. An estimate that is more than
// this many times longer than a sample is dropped for it.
const maxGrowth = 8

// An rtt estimates the round-trip time of a carrier, end to end, from frames and their acks, as RFC 6298 does.
type rtt struct {
	smoothed, variation time.Duration // 0 before the first sample

	seq       uint64 // of the frame being timed, 0 for none
	sentAt    time.Time
	sentAgain bool

	// recent are the last frames that were sent, each at its number modulo the length. A delayed ack
	// says for how long its sender has had the highest frame: only for that one it shows the time.
	recent [recentFrames]struct {
		seq    uint64
		sentAt time.Time
	}
}

const (
	// recentFrames is more than a person types, and a program echoes, between two acks; and the frames
	// of 1 MiB of bulk data on its way.
	recentFrames = 64

	// maxInexact is the longest delay of an ack that shows the time of a frame before the highest.
	maxInexact = 2 * shortAckDelay
)

// start times the frame seq, which is sent for the first time.
func (r *rtt) start(now time.Time, seq uint64) {
	if r.seq == 0 {
		r.seq, r.sentAt, r.sentAgain = seq, now, false
	}
	recent := &r.recent[seq%recentFrames]
	recent.seq, recent.sentAt = seq, now
}

// drop gives up what is being timed.
func (r *rtt) drop() {
	r.seq = 0
	clear(r.recent[:])
}

// resent records that the frame being timed was sent again, so an ack could be for either copy (Karn's algorithm).
// Under heavy loss there is no other measure: then the time since the first copy counts, but with little weight if it
// makes the estimate longer.
func (r *rtt) resent() { r.sentAgain = true }

// acked records that frames up to highest have arrived, that one some time ago. It returns how long
// its way and that of the ack took, or 0 if that is not known.
func (r *rtt) acked(now time.Time, highest uint64, ago time.Duration) time.Duration {
	recent := &r.recent[highest%recentFrames]
	exact := recent.seq == highest && highest > 0
	timed := r.seq > 0 && highest >= r.seq
	sentAt := r.sentAt
	if timed {
		r.seq = 0
	}
	switch {
	case exact:
		sentAt, recent.seq = recent.sentAt, 0
	case !timed || ago > maxInexact:
		return 0
	}
	took := max(now.Sub(sentAt)-ago, leastTook)
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
