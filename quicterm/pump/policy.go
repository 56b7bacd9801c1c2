package pump

import "time"

// A Compression says what of a carrier's stream is compressed.
type Compression byte

// The compressions.
const (
	Off  Compression = 0 // nothing
	Auto Compression = 1 // what makes a difference: see below
	On   Compression = 2 // all that gets shorter

	// asAsked is what the other end wants.
	asAsked Compression = 0xff
)

// With Auto, a write to the stream is compressed where the path limits what
// is sent, not the processor:
const (
	// nearRTT is the round-trip time below which the other end is on this
	// machine or in this house, with what a burst and its ack take at least.
	nearRTT = 10 * time.Millisecond

	// fastRate is how many bytes a second a path carries that is fast. To fill
	// it with a log of which a seventh is left, half a processor is busy with
	// compression (250 MB/s), and a quarter at the other end.
	fastRate = 20e6

	// leastAuto and leastOn are how long a write is that may be worth it: no
	// key, and with Auto no line. A packet carries them all the same.
	leastAuto = 256
	leastOn   = 64

	// worthwhile is how many times longer frames must be than what stands for
	// them.
	worthwhile = 1.1

	// pauseWrites and pauseBytes are how much goes as it is after it was not,
	// whichever is reached first, before the next try.
	pauseWrites = 32
	pauseBytes  = 1 << 20
)

// A policy decides which writes are compressed. Its zero value is ready.
type policy struct {
	before, after float64 // bytes of the last writes that were tried, each half of what comes next
	writes, bytes int     // that are left of a pause
	wire, log     float64 // bytes sent of late, and what they stand for
}

// some reports whether anything is compressed.
func (c Compression) some() bool { return c != Off && c != asAsked }

// compress reports whether to try that with a write of n bytes, over a path
// with a shortest round-trip time and a rate in bytes of the log per second, or
// 0 for either while it is not known.
func (p *policy) compress(mode Compression, n int, rtt time.Duration, rate float64) bool {
	switch mode {
	case Off:
		return false
	case On:
		return n >= leastOn
	}
	// The log goes faster than the path while it is compressed.
	if p.log > 0 {
		rate *= p.wire / p.log
	}
	if n < leastAuto || rtt < nearRTT || rate > fastRate {
		return false
	}
	if p.writes > 0 && p.bytes > 0 {
		p.writes--
		p.bytes -= n
		return false
	}
	return true
}

// tried takes note that n bytes could be sent as the given number, which is n
// if that was of no use.
func (p *policy) tried(n, packed int) {
	p.before, p.after = p.before/2+float64(n), p.after/2+float64(packed)
	if p.before < worthwhile*p.after {
		p.before, p.after = 0, 0
		p.writes, p.bytes = pauseWrites, pauseBytes
	}
}

// memory is about how many bytes of the log the ratio to what is sent is
// taken of.
const memory = 1 << 20

// sent takes note that n bytes of the log went as the given number.
func (p *policy) sent(n, wire int) {
	keep := max(1-float64(n)/memory, 0)
	p.log, p.wire = p.log*keep+float64(n), p.wire*keep+float64(wire)
}
