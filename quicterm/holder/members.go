//go:build linux || darwin

package holder

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// awayGrace is how long a client may have no carrier before the writers are told that it has left,
// and another one may have its place: a move to another network takes less.
const awayGrace = 10 * time.Second

// cameLocked notes that a client has a carrier, after it had none.
func (h *Holder) cameLocked(a *attachment) {
	if a.role.writes() {
		h.presenceChangedLocked()
		h.lookLaterLocked(time.Now())
		for _, other := range h.clients.all {
			if other != a && other.announced {
				a.tell(wire.NoticeJoined, other)
			}
		}
	}
	if a.announced || a.role != roleShare && a.role != roleWatch {
		return
	}
	a.announced = true
	h.tellWritersLocked(wire.NoticeJoined, a)
}

// wentLocked notes that a client has no carrier any more.
func (h *Holder) wentLocked(a *attachment) {
	if a.role.writes() {
		h.presenceChangedLocked()
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
	if a.announced {
		a.announced = false
		h.tellWritersLocked(wire.NoticeLeft, a)
	}
}

func (h *Holder) tellWritersLocked(code byte, about *attachment) {
	for w := range h.clients.writers() {
		if w != about {
			w.tell(code, about)
		}
	}
}

// tell sends a notice about another client on the carriers that there are.
func (a *attachment) tell(code byte, about *attachment) {
	p := wire.Presence{Number: about.number, Role: about.asked, Client: about.client}
	a.endpoint.Announce(code, p.String())
	a.driver.Wake()
}
