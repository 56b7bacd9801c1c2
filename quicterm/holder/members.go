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

// newCarrierLocked tells a client the name of the session, and a writer who is there and who has left, as far as
// it may not know: what it was told on a carrier may never have come.
func (h *Holder) newCarrierLocked(a *attachment) {
	if a.answer.Name != h.launch.Name {
		a.tell(wire.NoticeRenamed, h.launch.Name)
	}
	if !a.role.writes() {
		return
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

func (h *Holder) cameLocked(a *attachment) {
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
	if a.role.writes() {
		h.presenceChangedLocked()
		h.fitTerminalLocked()
	}
	if a.announced {
		h.afterLocked(awayGrace, func() {
			if !a.connected() {
				h.announceLeftLocked(a)
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

// leaveLocked forgets a client that will not come back.
func (h *Holder) leaveLocked(a *attachment) {
	h.log.Info("client left", "client", a.client)
	wrote := a.role.writes()
	h.clients.remove(a)
	h.announceLeftLocked(a)
	if !h.launch.PTY && !h.life.hungUp { // no other client can attach
		h.hangupLocked("")
	}
	if wrote {
		h.fitTerminalLocked()
		h.presenceChangedLocked()
	}
}
