package driver

import (
	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session"
)

// A Compression says which writes to a carrier's stream are compressed.
//
// One end asks: it says on the stream of each carrier that it accepts compressed frames,
// and which writes to compress. The other answers with the same. From then on each end
// decides for each write, so plain and compressed frames come in any order.
type Compression byte

// The compressions.
const (
	Off  Compression = 0 // none
	Auto Compression = 1 // those that policy.go selects
	On   Compression = 2 // all of at least minOn bytes that get shorter

	// asAsked accepts and does what the peer asks for.
	asAsked Compression = 0xff
)

// enabled reports whether any writes are compressed.
func (c Compression) enabled() bool { return c != Off && c != asAsked }

// A negotiation is the state of compression on one carrier.
type negotiation struct {
	accepts   Compression // what the peer may compress
	announced bool        // the peer was told so
	sends     Compression // what the peer has asked for
}

// asked records what the peer accepts.
func (n *negotiation) asked(what Compression) {
	if what > On { // a value of a later version
		what = Auto
	}
	if n.accepts == asAsked {
		n.accepts = what
	}
	if n.accepts.enabled() {
		n.sends = what
	}
}

// announce returns the frames that tell the peer what this end accepts, once: after the
// first write, or in answer. Otherwise it returns nil.
func (n *negotiation) announce(writing bool) (frames []byte) {
	if !n.announced && n.accepts.enabled() && (writing || n.sends != Off) {
		n.announced = true
		frames = buffer.AppendFrame(frames, buffer.Frame{Type: session.Compression, Payload: []byte{byte(n.accepts)}})
	}
	return frames
}
