package driver

import "time"

// A Compression says which writes to the streams of an attachment are compressed. Its Attach tells the holder that,
// and both ends decide for each write, so plain and compressed frames come in any order.
type Compression byte

// The compressions. Values of a later version are taken for Auto.
const (
	Off  Compression = 0 // none
	Auto Compression = 1 // those that policy selects
	On   Compression = 2 // all of at least minOn bytes that get shorter
)

// With Auto, a write to the stream is compressed if the path limits the throughput, and not the processor:
const (
	// nearRTT is the round-trip time below which the peer is on this machine or in the
	// same building, including the delay of bursts and acks.
	nearRTT = 10 * time.Millisecond

	// fastRate is the rate in bytes per second from which on a path is fast. To fill it with a log that shrinks to a
	// seventh, compression takes half a processor (250 MB/s), and a quarter at the peer.
	fastRate = 20e6

	// minAuto and minOn are the sizes of the smallest writes that are compressed: more than a key, and with Auto more
	// than a line. Smaller writes fit into one packet as they are.
	minAuto = 256
	minOn   = 64

	// minUnknown is the size of the smallest writes that Auto compresses while the path is not
	// measured: more than the first lines of a shell, less than a screen of a program.
	minUnknown = 4 << 10

	// minRatio is how many times smaller the compressed frames must be.
	minRatio = 1.1

	// pauseWrites and pauseBytes bound how much is sent plain, whichever is reached
	// first, before the next try after one that did not help.
	pauseWrites = 32
	pauseBytes  = 1 << 20

	// ratioBytes is about how many recent bytes of the log the achieved ratio is computed from.
	ratioBytes = 1 << 20
)

// A policy decides which writes are compressed. Its zero value is ready.
type policy struct {
	before, after           float64 // bytes of recent tries, each weighing half of the next
	pausedWrites            int     // left of a pause
	pausedBytes             int
	recentLog, recentStream float64 // bytes of the log sent recently, and of the stream for them
}

// compress reports whether to try to compress a write of n bytes, over a path with a shortest round-trip time and a
// rate in bytes of the log per second. Each is 0 while it is unknown.
func (p *policy) compress(mode Compression, n int, rtt time.Duration, rate float64) bool {
	switch mode {
	case Off:
		return false
	case On:
		return n >= minOn
	}
	if p.recentLog > 0 { // the rate of the log is that of the path times the ratio
		rate *= p.recentStream / p.recentLog
	}
	if near := rtt > 0 && rtt < nearRTT; near || rtt == 0 && n < minUnknown || n < minAuto || rate > fastRate {
		return false
	}
	if p.pausedWrites > 0 && p.pausedBytes > 0 {
		p.pausedWrites--
		p.pausedBytes -= n
		return false
	}
	return true
}

// tried records that n bytes were compressed to packed bytes, or that packed is n because they got no shorter.
func (p *policy) tried(n, packed int) {
	p.before, p.after = p.before/2+float64(n), p.after/2+float64(packed)
	if p.before < minRatio*p.after {
		p.before, p.after = 0, 0
		p.pausedWrites, p.pausedBytes = pauseWrites, pauseBytes
	}
}

// sent records that n bytes of the log were sent as the given number of bytes.
func (p *policy) sent(n, streamed int) {
	keep := max(1-float64(n)/ratioBytes, 0)
	p.recentLog, p.recentStream = p.recentLog*keep+float64(n), p.recentStream*keep+float64(streamed)
}
