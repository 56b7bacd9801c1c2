//go:build linux || darwin

package holder

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// revokeLocked takes from the writer what it attached with, if the request is for its key.
// It returns how many clients have lost access. The session is then detached, or hung up
// if no other client can attach to it.
func (h *Holder) revokeLocked(by string, req *wire.Revoke) uint32 {
	a := h.clients.writer()
	if a == nil || !req.All && !a.loggedInWith(req.Key) {
		return 0
	}
	h.log.Warn("client has lost access", "client", a.client, "reason", "revoked by "+by)
	if n := a.endpoint.DropPending(); n > 0 {
		h.log.Info("input of a revoked client dropped", "client", a.client, "frames", n)
	}
	a.role, a.revokedBy = roleRevoked, by
	a.close()
	if !h.launch.PTY && !h.life.hungUp {
		h.life.killed = true
		h.hangupLocked("")
	}
	h.presenceChangedLocked()
	return 1
}

// loginOf returns what the daemon is told of a client's login when it resumes.
func loginOf(open *wire.Open) wire.Resumed {
	return wire.Resumed{Account: open.Account, Key: open.Key, Scope: open.Scope, NoPTY: open.NoPTY}
}

// loggedInWith reports whether the client has logged in with the key that has a SHA-256.
func (a *attachment) loggedInWith(sum []byte) bool {
	if len(a.login.Key) == 0 {
		return false
	}
	got := sha256.Sum256(a.login.Key)
	return bytes.Equal(got[:], sum)
}

// refusalLocked returns what a client is told that comes back and is not the writer, or nil.
func (h *Holder) refusalLocked(a *attachment) *wire.Error {
	switch a.role {
	case roleDisplaced:
		return &wire.Error{Code: wire.CodeDisplaced, Text: a.displacedBy}
	case roleRevoked:
		a.toldRevoked = true
		h.endIfUnseenLocked()
		return &wire.Error{Code: wire.CodeWithdrawn, Text: fmt.Sprintf("%s has revoked it (qt revoke)", a.revokedBy)}
	}
	return nil
}
