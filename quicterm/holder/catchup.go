//go:build linux || darwin

package holder

import (
	"bytes"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// How a client gets to the present:
//
//   - replay: a new client is sent all output that no client has seen and, on a
//     terminal, the last screens before that;
//   - redraw: a change of the terminal's size makes a full-screen program draw itself;
//   - skip: a client that asks for it is not sent the output that waits for it.

const (
	// redrawTime is how long the terminal has another size, so that a program notices.
	redrawTime = 50 * time.Millisecond

	// skipKeep is how many of the last bytes of output are not skipped: they hold the
	// prompt. The frame that holds the first of them is sent whole.
	skipKeep = 1 << 10

	// skipGrace is how long a program may act on the input before a Skip. What it prints
	// meanwhile is read and skipped, to get to the prompt.
	skipGrace = 10 * time.Millisecond
)

// replay returns where the output for a new client begins, and how many bytes of it the
// client leaves out. It is all output that no client has seen and, on a terminal, the
// end of the rest from a line's start.
func (s *clients) replay() (first, offset, trim uint64) {
	first, offset = s.unseen, s.unseenOffset
	if !s.pty {
		return first, offset, 0
	}
	end := s.ring.Offset(s.ring.Next())
	seen := max(s.ring.Find(end-min(history, end)), s.ring.First())
	if seen >= first || s.ring.First() > first {
		return first, offset, 0
	}
	first, offset = seen, s.ring.Offset(seen)
	if first == 1 {
		return first, offset, 0
	}
	for seq := first; seq < s.unseen; {
		var b []byte
		b, seq = s.ring.Slice(seq, 1)
		f, _, err := buffer.Parse(b)
		if err != nil || f.Type != wire.Stdout {
			continue
		}
		if i := bytes.IndexByte(f.Payload, '\n'); i >= 0 {
			return first, offset, trim + uint64(i) + 1
		}
		trim += uint64(len(f.Payload))
	}
	return s.unseen, s.unseenOffset, 0 // one line, longer than the history
}

// redrawLocked makes a full-screen program draw itself: the terminal gets a size that
// differs by a row, and then the given one.
func (h *Holder) redrawLocked(size wire.Size) {
	other := size
	if other.Rows > 1 {
		other.Rows--
	} else {
		other.Rows++
	}
	h.resizeLocked(other)
	h.redraws++
	h.afterLocked(redrawTime, func() {
		h.redraws--
		if h.program.Size() == other { // the client has not resized it
			h.resizeLocked(size)
		}
	})
}

// skipLocked drops the output that waits for a client, skipGrace later. Of a pipe it
// drops nothing, and never the program's end.
func (h *Holder) skipLocked(a *attachment) {
	if !h.launch.PTY || a.skipping {
		return
	}
	a.skipping = true
	h.gate.Changed()
	h.afterLocked(skipGrace, func() {
		a.skipping = false
		h.gate.Changed()
		if !a.role.receives() {
			return
		}
		keep := uint64(skipKeep)
		if h.life.exited {
			keep = max(keep, h.ring.Offset(h.ring.Next())-h.ring.Offset(h.life.exitSeq))
		}
		a.endpoint.Skip(keep)
		a.driver.Wake()
		if h.redraws == 0 { // otherwise the size is not the program's own
			h.redrawLocked(h.program.Size())
		}
	})
}
