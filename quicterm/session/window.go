package session

import (
	"math"

	"github.com/quicterm/quicterm/buffer"
)

// initialWindow is the flow-control window in bytes before the first ack. No end grants less.
const initialWindow = 256 << 10

// PeerIsFull reports whether the peer's flow-control window has no space for the next frame, as when the program does
// not read its input. The peer owes no ack until it has consumed some frames.
func (e *Endpoint) PeerIsFull() bool {
	return e.acked < e.log.Next() && e.span(e.acked, e.acked+1) > e.windowSpace(e.acked, 0)
}

// windowSpace returns how many bytes of frames from the given one on fit into the
// peer's flow-control window, if skipped bytes before it are left out.
func (e *Endpoint) windowSpace(from uint64, skipped int) int {
	at, end := position(from, e.log.Offset(from)), e.windowEnd+uint64(skipped)
	if at >= end {
		return 0
	}
	return int(min(end-at, math.MaxInt32))
}

// fits reports whether the peer's flow-control window has room for a frame on a carrier's stream.
func (e *Endpoint) fits(c *carrier, seq uint64) bool {
	return e.span(seq, seq+1) <= e.windowSpace(seq, e.skippedInWindow(c))
}

// position returns where the frame seq begins in a log, in bytes of encoded frames, from its offset.
func position(seq, offset uint64) uint64 { return offset + buffer.Overhead*(seq-1) }

// span returns how many bytes the frames of the log from one up to another take, encoded.
func (e *Endpoint) span(from, to uint64) int {
	if from >= to {
		return 0
	}
	return int(e.log.Offset(to)-e.log.Offset(from)) + buffer.Overhead*int(to-from)
}

// frameBytes returns how many bytes a frame takes, encoded.
func frameBytes(f buffer.Frame) int { return buffer.Overhead + len(f.Payload) }
