//go:build linux || darwin

package holder

import (
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxLeft is how many clients that have left a writer is told of on a new carrier: those that left
// while a carrier was dead.
const maxLeft = 16

// newCarrierLocked tells a client the name of the session, and a writer who is there and who has left, and what has ended
// while it was away, as far as it may not know: what it was told on a carrier may never have come.
func (h *Holder) newCarrierLocked(a *attachment) {
	if a.answer.Name != h.launch.Name {
		a.tell(wire.NoticeRenamed, h.launch.Name)
	}
	if a.appeared {
		a.tell(wire.NoticeAppeared, "")
	}
	if !a.role.writes() || a.guest {
		return
	}
	h.ports.tellLocked(a)
	if a.missed != "" {
		a.tell(wire.NoticeEnded, a.missed)
	}
	for _, other := range h.clients.all {
		if other != a && other.announced {
			a.tell(wire.NoticeJoined, other.presence().String())
		}
	}
	for _, p := range h.clients.left {
		a.tell(wire.NoticeLeft, p.String())
	}
}

// appearedLocked tells the clients that follow the session, and may see one of a scope, that this was started.
func (h *Holder) appearedLocked(scope string) {
	for _, a := range h.clients.all {
		if a.follows && a.role.receives() && (a.login.Scope == "" || a.login.Scope == scope) {
			a.appeared = true
			a.tell(wire.NoticeAppeared, "")
		}
	}
}

func (h *Holder) cameLocked(a *attachment) {
	h.offerAgentLocked()
	h.events.tellClientLocked(a, true, "")
	h.ports.lookLaterLocked()
	if !a.left.Equal(a.since) { // not at its attach
		a.back = time.Now()
	}
	if a.role.writes() {
		h.presenceChangedLocked()
		h.hints.lookLaterLocked(time.Now())
		h.fitTerminalLocked()
	}
	if a.announced || a.role != roleShare && a.role != roleWatch {
		return
	}
	a.announced = true
	h.clients.left = slices.DeleteFunc(h.clients.left, func(p wire.Presence) bool { return p.Number == a.number })
	h.clients.tellWriters(wire.NoticeJoined, a)
}

func (h *Holder) wentLocked(a *attachment) {
	h.offerAgentLocked()
	if a.agent != (wire.AgentID{}) {
		h.afterLocked(agentGrace, h.offerAgentLocked)
	}
	if a.role.writes() {
		h.presenceChangedLocked()
		h.fitTerminalLocked()
	}
	if a.announced || a.told {
		h.afterLocked(awayGrace, func() {
			if a.away(time.Now()) {
				h.typing.Release(a.number)
				h.announceLeftLocked(a)
				h.events.tellClientLocked(a, false, "")
			}
		})
	}
}

// announceLeftLocked tells the writers that a client has left, unless they know.
func (h *Holder) announceLeftLocked(a *attachment) {
	if !a.announced {
		return
	}
	a.announced = false
	h.clients.tellWriters(wire.NoticeLeft, a)
	s := &h.clients
	if s.left = append(s.left, a.presence()); len(s.left) > maxLeft {
		s.left = s.left[1:]
	}
}

// makeRoomLocked reports whether another client may come beside the writer. It may have to forget one for that.
func (h *Holder) makeRoomLocked(share bool) bool {
	forgotten, ok := h.clients.makeRoom(time.Now(), share)
	if forgotten != nil {
		h.leaveLocked(forgotten)
	}
	return ok
}

// leaveLocked forgets a client that will not come back.
func (h *Holder) leaveLocked(a *attachment) {
	h.log.Info("client left", "client", a.client)
	wrote := a.role.writes()
	h.typing.Leave(a.number)
	h.clients.remove(a)
	h.offerAgentLocked()
	h.announceLeftLocked(a)
	h.events.tellClientLocked(a, false, "")
	if !h.launch.PTY && wrote && !h.life.hungUp { // no other client can attach
		h.hangupLocked("")
	}
	if wrote {
		h.fitTerminalLocked()
		h.presenceChangedLocked()
	}
}
