package session

// A hole is what was left out of a carrier's stream at once: frames that were to be
// skipped, or had left the log.
type hole struct {
	from, to uint64 // the first of them, and the first after them
	unsent   uint64 // the first of them that no carrier has brought
	bytes    int
}

// maxHoles is how many holes the other end may not know of. Another one waits until
// it knows of the first.
const maxHoles = 16

// leave takes note that frames from one up to another are left out, unless that has
// to wait.
func (p *Peer) leave(c *carrier, from, to uint64) bool {
	for len(c.holes) > 0 && c.holes[0].to <= p.acked {
		c.left += uint64(c.holes[0].bytes)
		c.holes = c.holes[1:]
	}
	if len(c.holes) == maxHoles {
		return false
	}
	c.holes = append(c.holes, hole{from, to, min(max(from, p.sent), to), p.span(from, to)})
	if from < p.log.First() {
		c.credit.forget() // nobody can tell any more how many bytes that is
	}
	return true
}

// underWay returns how many bytes of frames before a given one are on their way.
func (p *Peer) underWay(c *carrier, next uint64) (bytes int) {
	at := max(c.acked, p.acked)
	for _, h := range c.holes {
		bytes += p.span(at, h.from)
		at = max(at, h.to)
	}
	return bytes + p.span(at, next)
}

// leftOut returns how many bytes of frames the other end was granted, but is not to
// get, and does not know of that yet.
func (p *Peer) leftOut(c *carrier) (bytes int) {
	for _, h := range c.holes {
		bytes += p.span(max(p.acked, h.unsent), h.to)
	}
	return bytes
}

// delivered returns how many bytes of frames of the log have arrived, by any
// carrier, but for those that were left out; or false if that cannot be told any
// more, because they have left the log.
func (p *Peer) delivered(c *carrier) (bytes uint64, known bool) {
	seq, left := max(c.acked, p.acked), c.left
	for _, h := range c.holes {
		if seq < h.to {
			seq = min(seq, h.from)
			break
		}
		left += uint64(h.bytes)
	}
	return position(seq, p.log.Offset(seq)) - left, seq >= p.log.First()
}
