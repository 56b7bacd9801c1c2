package netmon

import "time"

const (
	// clockSlack is how far the clocks may drift apart between two readings:
	// more than any correction of a clock that runs, less than a sleep.
	clockSlack = 1500 * time.Millisecond

	// longPause is a time between two readings that only a machine that has
	// slept leaves, where the monotonic clock goes on in sleep (Windows), or a
	// process that was stopped.
	longPause = 10 * time.Second
)

// clocks are two readings of one moment: of the wall clock, without a monotonic
// reading in it, and of the monotonic clock, which most systems stop in sleep.
type clocks struct {
	wall time.Time
	mono time.Duration
}

// jumped takes new readings, and reports whether there was a sleep or a jump
// between them and the last ones.
func (c *clocks) jumped(wall time.Time, mono time.Duration) bool {
	byWall, byMono := wall.Sub(c.wall), mono-c.mono
	*c = clocks{wall, mono}
	return (byWall-byMono).Abs() > clockSlack || byMono > longPause
}
