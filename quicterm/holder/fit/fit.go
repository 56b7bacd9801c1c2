// Package fit makes the ring of a session fit the memory of its machine; pure.
//
// When the machine is short of memory, the kernel ends processes, and their sessions with
// them. Before that, a holder gives up output:
//
//   - when memory is scarce, the ring does not grow: new output takes the place of the
//     oldest, as in any full ring, and the program on a pipe waits;
//   - when it is critical, the ring of a terminal shrinks by half each [CriticalInterval]. It
//     gives up the oldest output first: history that clients have had, then output that
//     none has had. A client is told how much, as of a full ring. What a connected client is
//     about to get stays, and all of a pipe's output.
//
// When there is plenty again, the ring has its full capacity.
package fit

import (
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
)

const (
	// Scarce, Critical and Plenty are parts of all memory that are available, in percent.
	Scarce   = 10
	Critical = 5
	Plenty   = 20

	// Least: below this many bytes memory is critical, whatever the percentage; below twice as much scarce;
	// from four times as much plenty, or from half of all memory if that is less, as in a control group with a small
	// limit. While the holder looks, the ring may grow by CheckGrowth, and its garbage by a third of the ring.
	Least = 2 * CheckGrowth

	// SmallRing is the size of a ring that is left alone, in bytes: some screens full.
	SmallRing = 1 << 20

	// CheckGrowth is how many bytes a ring grows between two looks at the memory of the
	// machine. A look costs less than reading that much output.
	CheckGrowth = 4 << 20

	// Interval is the time between two looks at a ring that is not small and does not grow.
	Interval = time.Minute

	// CriticalInterval is the time between two looks while memory is critical.
	CriticalInterval = Interval / 60
)

// A Ring is one to fit.
type Ring struct {
	*buffer.Ring
	Full  int  // capacity in bytes while memory is plenty
	Keep  int  // bytes that it does not give up
	Gives bool // it gives up output while memory is critical: it is that of a terminal
}

// Fit changes the capacity to what fits the memory of the machine, and returns when to look again, or 0 for when the ring
// has grown by CheckGrowth.
func (r Ring) Fit(state memory.State) (again time.Duration) {
	held := r.Memory()
	percent := state.Available * 100 / max(state.Total, 1)
	percent = min(percent, state.Available*Critical/Least)
	switch {
	case percent >= Plenty, percent >= Scarce && state.Available > state.Total/2:
		r.SetCapacity(r.Full)
	case percent < Critical && r.Gives:
		keep := max(held/2, SmallRing, r.Keep)
		r.SetCapacity(min(keep, r.Full, max(held, SmallRing)))
	case percent < Scarce:
		r.SetCapacity(min(r.Full, max(held, SmallRing)))
	}
	switch held = r.Memory(); {
	case held <= SmallRing && r.Capacity() == r.Full:
		return 0
	case held > SmallRing && percent < Critical && r.Gives:
		return CriticalInterval
	}
	return Interval
}
