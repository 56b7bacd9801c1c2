package session

import (
	"bytes"

	"github.com/quicterm/quicterm/buffer"
)

const (
	// maxPinRatio: copy a payload when the read buffer that it pins in memory is more than this many times its size.
	// So frames that wait take little more memory than they count for, and bulk is not copied.
	maxPinRatio = 4

	// maxPinned is the most that one frame can pin: the size of the largest buffer of a [buffer.Reader].
	maxPinned = 256 << 10
)

func (c *carrier) countUnkept(f buffer.Frame) {
	c.unkeptBytes = min(c.unkeptBytes+frameBytes(f), maxPinned)
}

// countKept counts a frame as one that is kept: it accounts for itself and for some of the bytes around it.
func (c *carrier) countKept(f buffer.Frame) {
	c.unkeptBytes = max(c.unkeptBytes-maxPinRatio*frameBytes(f), 0)
}

// unpin returns the frame, with a copy of its payload if that pins too much memory.
func (c *carrier) unpin(f buffer.Frame) buffer.Frame {
	if c.unkeptBytes > maxPinRatio*frameBytes(f) {
		f.Payload = bytes.Clone(f.Payload)
	}
	return f
}
