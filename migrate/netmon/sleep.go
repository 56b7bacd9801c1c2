package netmon

import "time"

const (
	// maxDrift bounds how far the clocks may drift apart between two readings without a sleep: more than any
	// correction of a running clock, and less than a sleep.
	maxDrift = 3 * clockInterval / 2

	// maxPause bounds the time between two readings of a process that runs. Only sleep or a stopped process exceeds
	// it: on Windows the monotonic clock advances during sleep, so that the clocks do not drift apart.
	maxPause = 10 * clockInterval
)

// clocks holds two readings of one moment: of the wall clock, without a monotonic
// reading in it, and of the monotonic clock, which most systems stop during sleep.
type clocks struct {
	wall time.Time
	mono time.Duration
}

// update stores new readings, and reports whether the machine slept, the process
// was stopped or a clock jumped since the previous ones.
func (c *clocks) update(wall time.Time, mono time.Duration) (jumped bool) {
	byWall, byMono := wall.Sub(c.wall), mono-c.mono
	*c = clocks{wall, mono}
	return (byWall-byMono).Abs() > maxDrift || byMono > maxPause
}
