package session

// A skippedRange is a range of frames that a carrier's stream left out at once, with a
// gap in its place: the ring had evicted them, or Skip dropped them.
type skippedRange struct {
	from, to    uint64 // the first of them, and the first after them
	firstUnsent uint64 // the first of them that no carrier has sent
	bytes       int    // encoded
	snapshot    int    // bytes that were sent in their place
}

// maxSkipped is how many skipped ranges a carrier's stream has that the peer may not
// know of. Another one waits for an ack.
const maxSkipped = 16

// skip records that a carrier's stream leaves out the frames from one up to another, for a
// snapshot of some bytes.
func (e *Endpoint) skip(c *carrier, from, to uint64, snapshot int) {
	c.skipped = append(c.skipped, skippedRange{from, to, min(max(from, e.firstUnsent), to), e.span(from, to), snapshot})
	if from < e.log.First() || snapshot > 0 {
		c.cwnd.dropSample() // how many bytes that makes is unknown
	}
}

// forgetSkipped forgets the ranges that the peer knows of, because it has acknowledged
// all frames before acked.
func (c *carrier) forgetSkipped(acked uint64) {
	for len(c.skipped) > 0 && c.skipped[0].to <= acked {
		c.skippedBytes += uint64(c.skipped[0].bytes)
		c.skipped = c.skipped[1:]
	}
	if c.gap != nil && c.gap.next <= acked {
		c.gap = nil // another carrier was quicker
	}
}

// inFlight returns how many bytes of frames before the given one are sent on a carrier
// and not acknowledged.
func (e *Endpoint) inFlight(c *carrier, next uint64) (bytes int) {
	at := max(c.acked, e.acked)
	for _, s := range c.skipped {
		bytes += e.span(at, s.from) + s.snapshot
		at = max(at, s.to)
	}
	return bytes + e.span(at, next)
}

// skippedInWindow returns how many bytes of frames the peer's flow-control window still
// counts, although no carrier has sent them and none will.
func (e *Endpoint) skippedInWindow(c *carrier) (bytes int) {
	for _, s := range c.skipped {
		bytes += e.span(max(e.acked, s.firstUnsent), s.to)
	}
	return bytes
}

// deliveredBytes returns how many bytes of frames of the log have arrived, over any
// carrier, without those that this carrier skipped. It is unknown if the ring has
// evicted them.
func (e *Endpoint) deliveredBytes(c *carrier) (bytes uint64, known bool) {
	seq, skipped := max(c.acked, e.acked), c.skippedBytes
	for _, s := range c.skipped {
		if seq < s.to {
			seq = min(seq, s.from)
			break
		}
		skipped += uint64(s.bytes)
	}
	return position(seq, e.log.Offset(seq)) - skipped, seq >= e.log.First()
}
