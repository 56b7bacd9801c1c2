//go:build linux || darwin

package monitor

import (
	"context"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Measure asks all sessions and returns the counts. What was measured less than leastAge ago counts.
func (s *Monitor) Measure(context.Context) (*privsep.Numbers, error) {
	c := &s.census
	c.measuring.Lock()
	defer c.measuring.Unlock()
	if time.Since(c.measured) >= leastAge {
		// Not with the context of a request: its end would make the numbers wrong for all others.
		c.numbers = s.measure(s.inspectAll(s.life))
		c.measured = time.Now()
	}
	return c.numbers, nil
}

// measure returns the numbers of the moment. Sessions are all that have answered.
func (s *Monitor) measure(sessions []inspected, silent int) *privsep.Numbers {
	n := &privsep.Numbers{Silent: silent, Memory: memory.OfProcess(), Usage: privsep.UsageOfProcess()}
	for _, one := range sessions {
		r := one.report
		switch r.Phase {
		case wire.PhaseAttached:
			n.Attached++
		case wire.PhaseDetached:
			n.Detached++
		case wire.PhaseExited:
			n.Exited++
		}
		switch r.Software { // a holder can claim any: the name of the version is no label
		case "":
			n.Unknown++
		case s.software:
			n.Same++
		default:
			n.Other++
		}
		n.Ring, n.RingLimit, n.Output = n.Ring+r.Ring, n.RingLimit+r.Capacity, n.Output+r.Memory
	}
	c := &s.counts
	n.Started, n.Ended, n.Grants, n.Refused = c.started.Load(), c.ended.Load(), c.grants.Load(), c.refused.Load()
	n.Gaps, n.Duplicates, n.Corrupted = c.gaps.Load(), c.duplicates.Load(), c.corrupted.Load()
	return n
}
