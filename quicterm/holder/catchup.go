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
//   - screen: a new client is sent a snapshot of the screen;
//   - raw: or all output that no client has seen and, on a terminal, the last screens before
//     that;
//   - skip: a client that asks for it, or falls far behind in a flood and is not waited for, gets a
//     snapshot in place of the output that waits for it.

const (
	// skipKeep is how many of the last bytes of output are not skipped for a client that takes
	// no snapshots: they hold the prompt. The frame that holds the first of them is sent whole.
	skipKeep = 1 << 10

	// minSkipped is how many bytes at least a client that skips is behind by then. Else it is
	// what its path carries in a second.
	minSkipped = 256 << 10

	// watchedBytes bounds the same for all clients together that only watch.
	watchedBytes = 4 << 20
)

// A beginning is where the output for a new client begins.
type beginning struct {
	first, offset uint64
	trim          uint64 // bytes that the client leaves out
	screen        bool   // with a snapshot in place of all output there is
	unseen        uint64 // lines that no client has seen and the snapshot leaves out
}

func (h *Holder) beginningLocked(req *wire.Attach, created bool) (b beginning) {
	switch kind := req.Replay.Kind; {
	case req.Events && kind == wire.ReplayFrom:
		return h.events.fromLocked(req.Replay.From)
	case req.Events:
		return h.events.fromLocked(0)
	case (h.launch.PTY || req.Role.ReadOnly()) && !created && kind == wire.ReplayFrom:
		return h.fromLocked(req.Replay.From)
	case !h.launch.PTY, created, kind != wire.ReplayScreen && kind != wire.ReplayNone:
		b.first, b.offset, b.trim = h.clients.replay()
	case kind == wire.ReplayNone:
		b.first = h.presentLocked()
		b.offset = h.ring.Offset(b.first)
	default:
		b.first, b.screen, b.unseen = 1, true, h.emulator.hiddenLinesLocked(int(min(req.Replay.Lines, maxReplayLines)))
	}
	return b
}

// fromLocked returns where the output begins for a client that wants it from an offset on.
func (h *Holder) fromLocked(offset uint64) (b beginning) {
	b.first = min(h.ring.Find(offset), h.presentLocked())
	b.offset = h.ring.Offset(b.first)
	if b.offset <= offset || b.first == h.ring.First() {
		return b
	}
	b.first-- // it has the byte
	b.offset = h.ring.Offset(b.first)
	frame, _ := h.ring.Slice(b.first, 1)
	if f, _, err := buffer.Parse(frame); err == nil && (f.Type == wire.Stdout || f.Type == wire.Stderr) {
		b.trim = offset - b.offset
	}
	return b
}

// presentLocked returns the frame that a client has to get next which leaves out as much as
// it may: the program's end, if there is one.
func (h *Holder) presentLocked() uint64 {
	if h.life.exited {
		return h.life.exitSeq
	}
	return h.ring.Next()
}

// replay returns where the output for a new client begins, and how many bytes of it the client leaves out. It is all
// output that no client has seen and, on a terminal, the end of the rest from a line's start.
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
		if a.role.receives() {
			h.skipToPresentLocked(a, 0)
		}
	})
}

// skipToPresentLocked gives a client a snapshot in place of all output that waits for it. One
// that takes none gets the last output, which has the prompt.
func (h *Holder) skipToPresentLocked(a *attachment, lines int) {
	keep := h.ring.Offset(h.ring.Next()) - h.ring.Offset(h.presentLocked())
	if !a.takesSnapshots {
		keep = max(keep, skipKeep)
	}
	a.endpoint.Skip(keep)
	a.skippedTo, a.lines = a.endpoint.First(), lines
	a.driver.Wake()
}

// skipFloodLocked skips output that a client is too far behind with, if nobody waits for it. One that has not got to where
// the last skip ended is not skipped again before.
func (h *Holder) skipFloodLocked(a *attachment) {
	if !a.skips || a.resting || !a.role.receives() || !a.connected() ||
		a.endpoint.Acked() < a.skippedTo || a.endpoint.Unacked() <= h.clients.mostBehind(a) {
		return
	}
	h.skipToPresentLocked(a, 0)
	if !a.role.writes() {
		h.restLocked(a)
	}
}

func (h *Holder) restLocked(a *attachment) {
	a.resting = true
	h.afterLocked(restTime, func() {
		a.resting = false
		if a.role.receives() {
			h.skipToPresentLocked(a, 0)
			a.endpoint.Appended(time.Now())
			a.driver.Wake()
		}
	})
}

// mostBehind returns how many bytes of output may wait for a client that is not waited for.
func (s *clients) mostBehind(a *attachment) int {
	if a.role.writes() {
		return max(minSkipped, int(a.endpoint.Rate()))
	}
	return min(minSkipped, watchedBytes/len(s.all))
}
