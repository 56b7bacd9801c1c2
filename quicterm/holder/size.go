//go:build linux || darwin

package holder

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

func (h *Holder) fitTerminalLocked() {
	if !h.launch.PTY {
		return
	}
	now := time.Now()
	var writers []sizer
	for w := range h.clients.writers() {
		writers = append(writers, sizer{w.number, w.size, w.connected(), w.awaySince(), w.back})
	}
	h.ownership.shared = len(writers) > 1
	next, again := h.ownership.settle(now, writers)
	if !again.IsZero() && again != h.ownership.again {
		next.again = again
		h.afterLocked(again.Sub(now), h.fitTerminalLocked)
	}
	before := h.ownership
	if h.life.exited {
		next.size = before.size
	}
	if h.ownership = next; next.owner == before.owner && next.size == before.size || h.life.exited {
		return
	}
	sizing := h.sizingLocked()
	h.logLocked(wire.Resize, sizing.Append(nil)) // does not wait for clients
	h.program.Resize(next.size)
	if next.owner != before.owner {
		h.log.Info("the size has another owner", "client", sizing.Client, "columns", next.size.Cols, "rows", next.size.Rows)
	}
	if next.size.Cols == before.size.Cols && next.size.Rows == before.size.Rows {
		return
	}
	h.events.tellLocked(wire.Event{
		Kind: wire.EventResized, Cols: next.size.Cols, Rows: next.size.Rows, Client: sizing.Client,
	})
	// Terminals wrap lines for another size in different ways. Only that of an owner which stays the owner
	// has changed its size itself: the others get the screen as it is now.
	for _, a := range h.clients.all {
		stays := a.number == next.owner && a.number == before.owner
		if a.role.receives() && a.takesSnapshots && !a.records && a.connected() && !stays {
			h.skipToPresentLocked(a, 0)
		}
	}
}

// lookForOwnerLocked checks after ownerGrace whether the owner of a shared size has acknowledged the output: the
// carrier of a client that has vanished stays open for a while.
func (h *Holder) lookForOwnerLocked(now time.Time) {
	if o := &h.ownership; o.shared && !o.again.After(now) {
		o.again = now.Add(ownerGrace)
		h.afterLocked(ownerGrace, h.fitTerminalLocked)
	}
}
