//go:build linux || darwin

package holder

import "github.com/quicterm/quicterm/quicterm/wire"

// revokeLocked takes from clients what they attached with, if the request is for their key.
// It returns how many have lost access. The session is then detached, or hung up if no other
// client can attach to it.
func (h *Holder) revokeLocked(by string, req *wire.Revoke) (n uint32) {
	wrote := false
	for _, a := range h.clients.all {
		if !a.role.receives() || !req.All && !a.loggedInWith(req.Key) {
			continue
		}
		h.log.Warn("client has lost access", "client", a.client, "reason", "revoked by "+by)
		if n := a.endpoint.DropPending(); n > 0 {
			h.log.Info("input of a revoked client dropped", "client", a.client, "frames", n)
		}
		h.typing.Revoke(a.number)
		wrote = wrote || a.role.writes()
		a.role, a.revokedBy = roleRevoked, by
		a.close()
		h.announceLeftLocked(a)
		h.events.tellClientLocked(a, false, "revoked by "+by)
		n++
	}
	if n == 0 {
		return 0
	}
	h.clients.forgetLost()
	if !h.launch.PTY && wrote && !h.life.hungUp {
		h.life.killed = true
		h.hangupLocked("")
	}
	h.fitTerminalLocked()
	h.presenceChangedLocked()
	return n
}
