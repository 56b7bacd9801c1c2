//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"net/netip"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/client"
)

// revoke revokes the access of all clients from a machine, as qt revoke does. Those that were attached before must read
// nothing that is printed afterwards. Others come in their place.
func (w *world) revoke(m *machine, f *fault) {
	token, process := w.host.token(), m.newProcess()
	if token == nil {
		return
	}
	var attached []*actor
	for _, a := range w.everyone() {
		if a.current() != nil {
			attached = append(attached, a)
		}
		if !a.session.pty() { // its program is hung up
			a.session.mu.Lock()
			a.session.lost = true
			a.session.mu.Unlock()
		}
	}
	w.revoked.Store(true)
	defer process.kill() // qt ends then
	c := client.New(client.Config{
		Log:       w.logOf("qt revoke"),
		Resolve:   func(context.Context) ([]netip.AddrPort, error) { return serverAddrs, nil },
		Network:   process,
		CheckHost: func(ssh.PublicKey) error { return nil },
		Token:     client.Once(token),
	})
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	if revoked, err := c.Revoke(ctx, nil); err != nil || revoked.Silent > 0 {
		w.trace("access is not revoked: %v, %d holders are silent", err, revoked.Silent)
		return
	}
	w.reached("access revoked for all")
	for _, a := range attached {
		a.session.mu.Lock()
		printed := len(a.session.log)
		a.session.mu.Unlock()
		a.mu.Lock()
		a.lostAccess, a.readable, a.lastFrame = true, printed, w.host.holders.next(a.session)
		a.mu.Unlock()
	}
	for _, a := range attached {
		if a.session.pty() && a.session.lives() {
			w.comeAgain(f, a, a.role)
		}
	}
}

// checkAccessLocked checks that a client whose access was revoked reads only what was printed before.
func (a *actor) checkAccessLocked(b []byte) {
	if !a.lostAccess {
		return
	}
	a.session.mu.Lock()
	defer a.session.mu.Unlock()
	if !bytes.Contains(a.session.log[:a.readable], b) {
		a.world.failf("%s has lost its access, and reads %q", a.name, b)
	}
}

// checkScreenLocked checks that a screen that stands for the output up to a frame is none that a client without access
// may not see.
func (a *actor) checkScreenLocked(frame uint64) {
	if a.lostAccess && frame >= a.lastFrame {
		a.world.failf("%s has lost its access at frame %d, and gets the screen of frame %d", a.name, a.lastFrame, frame)
	}
}

// next returns the number of the next frame of a session's output, or 0 if its holder is gone.
func (h *holders) next(s *session) uint64 {
	ring, lock := h.ring(s)
	if ring == nil {
		return 0
	}
	lock.Lock()
	defer lock.Unlock()
	return ring.Next()
}
