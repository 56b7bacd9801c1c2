package session

import (
	"slices"
	"time"
)

// A run is a range of frames that was put on a carrier's stream at once, or a snapshot in place of frames.
type run struct {
	from, to uint64 // the first frame and the first after them; of a snapshot, the last frame that it replaces
	again    bool   // later frames were on the same stream before
	snapshot int    // its bytes, or 0
}

// An outStream is what a carrier's stream has sent of the log, and what of it has arrived.
type outStream struct {
	cursor     uint64    // the first frame that was put neither on the stream nor on that of a bulk carrier beside it
	missed     []run     // before the cursor, that bulk carriers have not delivered, in order
	flight     []run     // on their way, in the order of the stream
	top        uint64    // the first frame above all that were put on the stream
	acked      uint64    // the first frame above all that arrived on it
	delivered  uint64    // bytes that have arrived
	progressAt time.Time // when something arrived last, or was sent while nothing was on its way
	writing    bool      // what Stream returned last is not written yet
	aged       uint64    // the first frame that was not called old
	relieves   bool      // it is for bulk data, and the carrier that it is beside sends no more of that
}

// put records that a run is on its way.
func (c *outStream) put(r run) {
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

// inFlight returns how many bytes are on their way on a carrier's stream.
func (e *Endpoint) inFlight(c *carrier) (bytes int) {
	for _, r := range c.out.flight {
		bytes += e.runBytes(r)
	}
	return bytes
}

// noteArrivals removes from a carrier's flight what has arrived: on a stream, which is in order, all up to the
// highest frame that came; and what the peer has from anywhere. It counts these bytes, and reports whether there are
// any. What they are of frames that the ring has evicted is unknown, so that nothing is measured then.
func (e *Endpoint) noteArrivals(now time.Time, c *carrier) (any bool) {
	highest := -1
	for i, r := range c.out.flight {
		if !r.again && r.from < c.out.acked {
			highest = i
		}
	}
	before, evicted := c.out.delivered, false
	left := c.out.flight[:0]
	for i, r := range c.out.flight {
		bytes, from := e.runBytes(r), r.from
		switch r.from = max(r.from, e.acked); {
		case i < highest:
			r.from = r.to
		case i == highest:
			r.from = max(r.from, c.out.acked)
		}
		if r.from < r.to {
			bytes -= e.runBytes(r)
			left = append(left, r)
		}
		c.out.delivered += uint64(bytes)
		evicted = evicted || r.from > from && from < e.log.First()
	}
	c.out.flight = left
	if evicted {
		c.cwnd.dropSample()
	}
	if c.out.delivered > before {
		c.out.progressAt = now
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
