//go:build linux || darwin

package holder

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/sizing"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func (h *Holder) fitTerminalLocked() {
	if !h.launch.PTY {
		return
	}
	now := time.Now()
	var writers []sizing.Writer
	for w := range h.clients.writers() {
		writers = append(writers, sizing.Writer{
			Number: w.number, Size: w.size, Connected: w.connected(), Away: w.awaySince(), Back: w.back,
		})
	}
	h.ownership.Shared = len(writers) > 1
	next, again := h.ownership.Settle(now, writers)
	if !again.IsZero() && again != h.ownership.Again {
		next.Again = again
		h.afterLocked(again.Sub(now), h.fitTerminalLocked)
	}
	before := h.ownership
	if h.life.exited {
		next.Size = before.Size
	}
	if h.ownership = next; next.Owner == before.Owner && next.Size == before.Size || h.life.exited {
		return
	}
	told := h.sizingLocked()
	h.logLocked(wire.Resize, told.Append(nil)) // does not wait for clients
	h.program.Resize(next.Size)
	if next.Owner != before.Owner {
		h.log.Info("the size has another owner", "client", told.Client, "columns", next.Size.Cols, "rows", next.Size.Rows)
	}
	if next.Size.Cols == before.Size.Cols && next.Size.Rows == before.Size.Rows {
		return
	}
	h.events.tellLocked(wire.Event{
		Kind: wire.EventResized, Cols: next.Size.Cols, Rows: next.Size.Rows, Client: told.Client,
	})
	// Terminals wrap lines for another size in different ways. Only that of an owner which stays the owner
	// has changed its size itself: the others get the screen as it is now.
	for _, a := range h.clients.all {
		stays := a.number == next.Owner && a.number == before.Owner
		if a.role.receives() && a.takesSnapshots && !a.records && a.connected() && !stays {
			h.skipToPresentLocked(a, 0)
		}
	}
}

// lookForOwnerLocked checks after sizing.Grace whether the owner of a shared size has acknowledged the output: the
// carrier of a client that has vanished stays open for a while.
func (h *Holder) lookForOwnerLocked(now time.Time) {
	if o := &h.ownership; o.Shared && !o.Again.After(now) {
		o.Again = now.Add(sizing.Grace)
		h.afterLocked(sizing.Grace, h.fitTerminalLocked)
	}
}

func (h *Holder) sizingLocked() wire.Sizing {
	told := wire.Sizing{Size: h.ownership.Size, Owner: h.ownership.Owner}
	if owner := h.clients.numbered(told.Owner); owner != nil {
		told.Client = owner.client
	}
	return told
}
