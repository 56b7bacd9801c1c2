package session

import (
	"cmp"
	"slices"
	"time"
)

const (
	// MaxAhead is how many frames after the next one a receiver accepts on streams: those of the
	// usual flow-control window, 4 MiB, as a terminal is read on Linux, 4 KiB at a time.
	MaxAhead = 1024

	// minStuck is how long a stripe at least may deliver nothing before other carriers send what
	// is on its way there: QUIC repairs losses earlier.
	minStuck = 500 * time.Millisecond
)

// Stripe makes a carrier a stripe: its stream carries only runs of frames for which another
// carrier, the one that carries the whole log, has no room now. Activate ends that.
func (e *Endpoint) Stripe(now time.Time, id CarrierID) {
	if c := e.carriers[id]; c != nil {
		c.stripe, c.roleDue = true, true
	}
}

// whole returns the carrier beside which stripes carry frames: the only one that carries the
// whole log. While there are others, as in a move, it is nil.
func (e *Endpoint) whole() (whole *carrier) {
	for _, c := range e.carriers {
		if c.standBy || c.stripe || !c.ready {
			continue
		}
		if whole != nil {
			return nil
		}
		whole = c
	}
	return whole
}

// becomeWhole makes a stripe carry the whole log. Other carriers send what it had: it may end before
// it has sent that again.
func (e *Endpoint) becomeWhole(now time.Time, c *carrier) {
	e.abandon(c)
	c.stripe, c.stalled = false, false
	c.streamCursor, c.tail.cursor = e.acked, e.acked
	c.restartProbes(now)
	c.scheduleAck(now) // while there were only stripes, nothing said what was consumed
}

// overflows reports whether a carrier has no room for its next frames, or is still writing.
func (e *Endpoint) overflows(now time.Time, c *carrier) bool {
	return c.writing || c.cwnd.size(now) <= e.inFlight(c)
}

// nextOnStripe returns the next run for a stripe, which is empty if there is none.
func (e *Endpoint) nextOnStripe(now time.Time, c *carrier) (from, to uint64) {
	whole := e.whole()
	from = max(e.firstUnsent, e.acked)
	if whole == nil || !c.ready || c.stalled || from < e.first() || whole.gap != nil || !e.overflows(now, whole) {
		return from, from
	}
	if next, _ := e.nextOnWhole(whole); next < e.first() {
		return from, from // a gap is due
	}
	return from, max(from, e.log.Next())
}

// stalledAt returns when a stripe is stalled unless it delivers something, or zero.
func (c *carrier) stalledAt() time.Time {
	if !c.stripe || c.stalled || len(c.flight) == 0 {
		return time.Time{}
	}
	return c.progressAt.Add(max(4*c.rtt.timeout(), minStuck))
}

// stalledTime returns when the first stripe is stalled, or zero. A carrier asks for that which has left
// frames to stripes.
func (e *Endpoint) stalledTime(c *carrier) (at time.Time) {
	if c.ready && !c.stripe && len(c.leftOut) > 0 {
		for _, s := range e.carriers {
			at = earlier(at, s.stalledAt())
		}
	}
	return at
}

// abandonStalled gives what is on its way on stalled stripes to the other carriers.
func (e *Endpoint) abandonStalled(now time.Time) {
	for _, s := range e.carriers {
		if due(now, s.stalledAt()) {
			s.stalled, s.ping.due = true, true // an ack shows that it lives
			e.abandon(s)
		}
	}
}

// abandon gives what is on its way on a stripe to the carriers that have left it out.
func (e *Endpoint) abandon(s *carrier) {
	for _, c := range e.carriers {
		if len(c.leftOut) > 0 && c != s {
			c.missed = append(c.missed, s.flight...)
			slices.SortFunc(c.missed, func(a, b run) int { return cmp.Compare(a.from, b.from) })
			c.missed = joined(c.missed)
		}
	}
	s.flight = nil
}

// joined joins runs that meet or overlap. A peer that makes a carrier a stripe again and again cannot
// make the list long.
func joined(runs []run) []run {
	out := runs[:0]
	for _, r := range runs {
		if n := len(out); n > 0 && r.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, r.to)
			continue
		}
		out = append(out, r)
	}
	return out
}
