package client

import (
	"slices"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxHints bounds how many hints wait for the output that they are behind.
const maxHints = 64

// hints are those that wait to be told. The session's gate guards them.
type hints struct {
	secret  bool        // the terminal reads a line that it does not show
	number  uint64      // of the last that came
	waiting []wire.Hint // oldest first, each with a later Out than the one before
	written uint64      // the last frame of output that was written
}

// take takes what came behind an ack. A later version may have put something else there. The last hint that comes again
// still holds: it is told again.
func (h *hints) take(received uint64, note []byte) {
	hint, number, err := wire.ParseHint(note, received)
	if err != nil || number < h.number {
		return
	}
	h.secret = hint.Terminal.Secret() // what is typed next is one, whatever the output is that it stands behind
	if hint.Out < h.written {
		return
	}
	h.number = number
	for n := len(h.waiting); n > 0 && (h.waiting[n-1].Out >= hint.Out || n == maxHints); n-- {
		h.waiting = h.waiting[:n-1]
	}
	h.waiting = append(h.waiting, hint)
}

// next returns the frame of output behind which the next hint is due, or 0.
func (h *hints) next() uint64 {
	if len(h.waiting) == 0 {
		return 0
	}
	return h.waiting[0].Out
}

// due reports whether a hint is to be told before more output is written.
func (h *hints) due() bool { return len(h.waiting) > 0 && h.waiting[0].Out <= h.written }

// wrote records that the output up to a frame is written.
func (h *hints) wrote(frame uint64) {
	h.written = frame
	late := 0
	for late < len(h.waiting) && h.waiting[late].Out < frame {
		late++
	}
	h.waiting = slices.Delete(h.waiting, 0, late)
}

// pop returns the hint that is due and removes it.
func (h *hints) pop() (hint wire.Hint, ok bool) {
	if !h.due() {
		return hint, false
	}
	hint = h.waiting[0]
	h.waiting = slices.Delete(h.waiting, 0, 1)
	return hint, true
}
