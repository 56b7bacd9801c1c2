package session

import (
	"slices"
	"time"
)

// A run is a range of frames that was put on a carrier's stream at once, or a snapshot in place
// of frames.
type run struct {
	from, to uint64 // the first frame and the first after them; of a snapshot, the last frame that it replaces
	again    bool   // later frames were on the same stream before
	snapshot int    // its bytes, or 0
}

// putOnStream records that a run is on its way on a carrier's stream.
func (c *carrier) putOnStream(r run) {
	r.again = r.from < c.top
	c.top = max(c.top, r.to)
	if n := len(c.flight); n > 0 && r.snapshot == 0 {
		if last := &c.flight[n-1]; last.snapshot == 0 && last.to == r.from && last.again == r.again {
			last.to = r.to
			return
		}
	}
	c.flight = append(c.flight, r)
}

// runBytes returns how many bytes a run takes on a stream.
func (e *Endpoint) runBytes(r run) int {
	if r.snapshot > 0 {
		return r.snapshot
	}
	return e.span(r.from, r.to)
}

// inFlight returns how many bytes are on their way on a carrier's stream. Beside stripes it does not count
// what they missed: whether this has arrived is known late, and it is little.
func (e *Endpoint) inFlight(c *carrier) (bytes int) {
	for _, r := range c.flight {
		if !r.again || len(c.leftOut) == 0 {
			bytes += e.runBytes(r)
		}
	}
	return bytes
}

// noteArrivals removes from a carrier's flight what has arrived: on a stream, which is in order, all
// up to the highest frame that came; and what the peer has from anywhere. It counts these bytes, and
// reports whether there are any. What they are of frames that the ring has evicted is unknown, so that
// nothing is measured then.
func (e *Endpoint) noteArrivals(now time.Time, c *carrier) (any bool) {
	highest := -1
	for i, r := range c.flight {
		if !r.again && r.from < c.acked {
			highest = i
		}
	}
	before, evicted := c.delivered, false
	left := c.flight[:0]
	for i, r := range c.flight {
		bytes, from := e.runBytes(r), r.from
		switch r.from = max(r.from, e.acked); {
		case i < highest:
			r.from = r.to
		case i == highest:
			r.from = max(r.from, c.acked)
		}
		if r.from < r.to {
			bytes -= e.runBytes(r)
			left = append(left, r)
		}
		c.delivered += uint64(bytes)
		evicted = evicted || r.from > from && from < e.log.First()
	}
	c.flight = left
	if evicted {
		c.cwnd.dropSample()
	}
	if c.delivered > before {
		c.progressAt = now
		return true
	}
	return false
}

// trim removes the frames before acked from runs.
func trim(runs []run, acked uint64) []run {
	for i := range runs {
		runs[i].from = max(runs[i].from, acked)
	}
	return slices.DeleteFunc(runs, func(r run) bool { return r.from >= r.to })
}
