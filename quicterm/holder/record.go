//go:build linux || darwin

package holder

import (
	"fmt"

	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func newKeeper(h *Holder) *persist.Keeper {
	if h.launch.Persist == nil || !h.launch.PTY {
		return nil
	}
	return persist.NewKeeper(h.launch.Persist.Dir, h.launch.ID, h.log, h.end, h.record)
}

// record returns the session's record, or nil if the screen is not known yet. It leaves out the oldest lines that do
// not fit.
func (h *Holder) record() (lost *wire.Lost, err error) {
	h.gate.Lock()
	defer h.gate.Unlock()
	e := &h.emulator
	if !e.awaitDrawnLocked() {
		h.keeper.Change()
		return nil, nil
	}
	lost = h.factsLocked()
	cols, rows := e.screen.Size()
	lost.Size = wire.Size{Cols: uint16(cols), Rows: uint16(rows)}
	err = recovered(func() {
		lost.Screen = e.screen.Snapshot(screen.Snapshot{Lines: maxReplayLines, Bytes: persist.MaxScreen})
	})
	if err != nil {
		e.failedLocked(err)
		e.hurry()
	} else if lost.Screen == nil {
		lost.Screen = []byte("(The screen was too large to be kept.)")
	}
	return lost, err
}

// factsLocked returns the session's record without the screen.
func (h *Holder) factsLocked() *wire.Lost {
	dir := h.launch.Dir
	if p, ok := h.program.(interface{ Directory() string }); ok && !h.life.exited {
		if d := p.Directory(); d != "" {
			dir = d
		}
	}
	command := ""
	if args := h.launch.Argv; len(args) == 3 { // shell -c command
		if command = args[2]; len(command) > persist.MaxCommand {
			command = h.launch.Command + "..."
		}
	}
	return &wire.Lost{
		Name: h.launch.Name, Scope: h.launch.Scope, Summary: h.launch.Command, Command: command, Dir: dir,
		Created: h.created.Unix(), Boot: h.boot,
		Exited: h.life.exited && !h.life.stopping, Status: h.life.exit.Status, Reason: h.life.exit.Reason,
	}
}

// clearHistoryLocked forgets the output that the writers have consumed, the scrollback, and what has happened.
func (h *Holder) clearHistoryLocked(client string) wire.Body {
	if !h.launch.PTY {
		return &wire.Error{Text: fmt.Sprintf("session %q has no terminal, and keeps no history", h.launch.Name)}
	}
	if !h.emulator.awaitDrawnLocked() {
		return &wire.Error{Text: fmt.Sprintf("session %q is busy: try again", h.launch.Name)}
	}
	e, ring := &h.emulator, h.ring
	var cleared wire.Cleared
	before := ring.Offset(ring.First())
	ring.Release(h.clients.forgetHistory(e.next))
	first := ring.Offset(ring.First())
	cleared.Bytes, cleared.Kept = first-before, ring.Offset(ring.Next())-first
	cleared.Lines = uint64(e.screen.Lines())
	e.screen.ClearHistory()
	if !h.events.toldEnd() { // titles have command lines, and notifications output
		h.events.log.Clear()
	}
	for _, a := range h.clients.all {
		a.missed = ""
	}
	e.memory, e.ahead, e.last, e.command.ended = e.screen.Memory(), mark{}, snapshot{}, nil
	h.keeper.Clear()
	e.markLocked()
	h.log.Info("history cleared", "client", client, "bytes", cleared.Bytes)
	return &cleared
}
