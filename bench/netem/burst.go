package netem

import (
	"math/rand/v2"
	"time"
)

// bursts are the bursts of a link. They do not depend on its packets.
type bursts struct {
	rng   *rand.Rand
	bad   bool      // in a burst
	until time.Time // when that changes; zero before the first packet
}

// on advances to now, and reports whether that is in a burst. Time must not go back.
func (b *bursts) on(what Burst, now time.Time) bool {
	if b.until.IsZero() {
		b.bad = b.rng.Float64() < what.Share
		b.until = now.Add(b.length(what))
	}
	for !now.Before(b.until) {
		b.bad = !b.bad
		b.until = b.until.Add(b.length(what))
	}
	return b.bad
}

// length returns how long a burst is, or the time between two.
func (b *bursts) length(what Burst) time.Duration {
	mean := float64(what.Mean)
	if !b.bad {
		mean *= (1 - what.Share) / what.Share
	}
	return time.Duration(b.rng.ExpFloat64()*mean) + 1 // never 0, so that on ends
}
