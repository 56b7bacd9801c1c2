//go:build linux || darwin

package holder

import "github.com/quicterm/quicterm/quicterm/wire"

// revokeLocked takes from clients what they attached with, if the request is for their key. It returns how many have
// lost access. The session is then detached, or hung up if no other client can attach to it.
func (h *Holder) revokeLocked(by string, req *wire.Revoke) (n uint32) {
	wrote := false
	for _, a := range h.clients.all {
		if !a.role.receives() || !req.All && !a.loggedInWith(req.Key) {
			continue
		}
		wrote = wrote || a.role.writes()
		h.takeAccessLocked(a, by+" has revoked it")
		n++
	}
	if n > 0 {
		h.tookAccessLocked(wrote)
	}
	return n
}

// takeAccessLocked takes access from a client, for a reason in words. The caller calls tookAccessLocked.
func (h *Holder) takeAccessLocked(a *attachment, why string) {
	h.log.Warn("client has lost access", "client", a.client, "reason", why)
	if n := a.endpoint.DropPending(); n > 0 {
		h.log.Info("input of a revoked client dropped", "client", a.client, "frames", n)
	}
	h.typing.Revoke(a.number)
	a.role, a.revoked = roleRevoked, why
	a.close()
	h.announceLeftLocked(a)
	h.events.tellClientLocked(a, false, why)
}

// tookAccessLocked acts on it that clients have lost their access, of which one wrote or none.
func (h *Holder) tookAccessLocked(wrote bool) {
	h.clients.forgetLost()
	h.offerAgentLocked()
	if !h.launch.PTY && wrote && !h.life.hungUp {
		h.life.killed = true
		h.hangupLocked("")
	}
	h.fitTerminalLocked()
	h.presenceChangedLocked()
}

// endGuestLocked ends the access of a guest whose share has ended.
func (h *Holder) endGuestLocked(a *attachment) {
	if a.role.receives() {
		wrote := a.role.writes()
		h.takeAccessLocked(a, "the share has ended")
		h.tookAccessLocked(wrote)
	}
}
