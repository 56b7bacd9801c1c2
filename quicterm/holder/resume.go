//go:build linux || darwin

package holder

import (
	"errors"
	"fmt"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/sealed"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// resumeLocked gives a client another carrier, sealed with its secret. The answer is Resumed, Denied or Error.
func (h *Holder) resumeLocked(r *wire.Resume) (answer wire.Body, carry func(carrier.Carrier), err error) {
	a := h.clients.find(r.Instance)
	switch {
	case a == nil || r.ID != h.launch.ID:
		err = errors.New("resume by an unknown client")
	case !a.verifier.Verify(r.N, r.Statement(), r.Proof):
		err = fmt.Errorf("resume with a proof, number %d, that does not hold", r.N)
	}
	if err != nil {
		h.denials.Limited(time.Now(), h.log, "resume denied", "error", err)
		return &wire.Denied{}, nil, nil
	}
	if refusal := h.refusalLocked(a); refusal != nil {
		return refusal, nil, nil
	}
	fromClient, fromHolder := a.verifier.SealKeys(r.Statement())
	login := a.login
	login.Away = time.Since(a.heard)
	return &login, func(c carrier.Carrier) { h.carry(a, sealed.New(c, fromHolder, fromClient), false) }, nil
}

// refusalLocked returns what a client is told that comes back and is not the writer, or nil.
func (h *Holder) refusalLocked(a *attachment) *wire.Error {
	if a.guest && time.Now().Unix() >= a.until { // timers stop while the machine sleeps
		h.endGuestLocked(a)
	}
	switch a.role {
	case roleDisplaced:
		return &wire.Error{Code: wire.CodeDisplaced, Text: a.displacedBy}
	case roleRevoked:
		a.toldRevoked = true
		h.endIfUnseenLocked()
		return &wire.Error{Code: wire.CodeWithdrawn, Text: a.revoked}
	}
	return nil
}
