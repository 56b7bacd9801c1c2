package session

import (
	"bytes"

	"github.com/quicterm/quicterm/buffer"
)

const (
	// light is how many times its own size a frame may keep in memory of what
	// came around it, and is of no use.
	light = 4

	// maxBallast is the most that any frame can keep so: what a
	// [buffer.Reader] reads at once.
	maxBallast = 256 << 10
)

// load notes that a frame came that may be of no use.
func (c *carrier) load(f buffer.Frame) { c.ballast = min(c.ballast+frameBytes(f), maxBallast) }

// unload notes that it is, and pays for some of what is not.
func (c *carrier) unload(f buffer.Frame) { c.ballast = max(c.ballast-light*frameBytes(f), 0) }

// lighten returns a frame as it should be kept: as it came or, where it would
// keep too much else, with a copy of its payload. So whatever comes between the
// frames that wait, they take little more memory than they count for; and a bulk of
// frames is not copied.
func (c *carrier) lighten(f buffer.Frame) buffer.Frame {
	if c.ballast > light*frameBytes(f) {
		f.Payload = bytes.Clone(f.Payload)
	}
	return f
}
