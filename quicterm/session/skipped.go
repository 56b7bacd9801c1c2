package session

// A skippedRange is a range of frames that a carrier's stream left out at once, with a
// gap in its place: the ring had evicted them, or Skip dropped them.
type skippedRange struct {
	from, to    uint64 // the first of them, and the first after them
	firstUnsent uint64 // the first of them that no carrier has sent
}

// maxSkipped is how many skipped ranges a carrier's stream has that the peer may not
// know of. Another one waits for an ack.
const maxSkipped = 16

// skip records that a carrier's stream leaves out the frames from one up to another, for a snapshot of some bytes.
func (e *Endpoint) skip(c *carrier, from, to uint64, snapshot int) {
	c.skipped = append(c.skipped, skippedRange{from, to, min(max(from, e.firstUnsent), to)})
	if snapshot > 0 {
		c.out.put(run{from: to - 1, to: to, snapshot: snapshot})
		c.cwnd.dropSample() // a snapshot is not held back for the window
	}
}

// forgetSkipped forgets the ranges that the peer knows of, because it has acknowledged all frames before acked.
func (c *carrier) forgetSkipped(acked uint64) {
	for len(c.skipped) > 0 && c.skipped[0].to <= acked {
		c.skipped = c.skipped[1:]
	}
	if c.gap != nil && c.gap.next <= acked {
		c.gap = nil // another carrier was quicker
	}
}

// skippedInWindow returns how many bytes of frames the peer's flow-control window still
// counts, although no carrier has sent them and none will.
func (e *Endpoint) skippedInWindow(c *carrier) (bytes int) {
	for _, s := range c.skipped {
		bytes += e.span(max(e.acked, s.firstUnsent), s.to)
	}
	return bytes
}
