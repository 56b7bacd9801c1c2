//go:build linux || darwin

package holder

import (
	"bytes"
	"crypto/sha256"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/session/driver"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxCarriers is how many carriers a client may have at once. For one more the
	// oldest is closed: it is the most likely to be dead. A client that lost contact
	// makes up to 16 attempts at once and keeps the first that is answered, which must
	// not be closed for the others.
	maxCarriers = 32

	// inputWindow is how many bytes of frames wait for a program that does not read its
	// input.
	inputWindow = 1 << 20

	// maxReplayLines is how many lines of scrollback a client may ask for; the screen has fewer.
	maxReplayLines = 1 << 20
)

// An attachment is a client process that attached to the session. The holder's gate
// guards it.
type attachment struct {
	role      role
	asked     wire.Role // that it attached in
	number    uint64    // in the order in which the clients came
	since     time.Time
	announced bool              // the writers know of it
	size      wire.Size         // of its terminal
	takenAt   uint64            // value of clients.taken when its last input was taken
	typedAt   uint64            // the same, of what a person typed in it
	agent     wire.AgentID      // that it offers, or zero
	entry     session.Delivered // that waits for its turn or is typed: what is behind it waits too
	instance  wire.InstanceID
	client    string         // account@address
	machine   string         // what the client's machine calls itself, or empty
	login     wire.Resumed   // what let the client in, for its daemon
	answer    *wire.Attached // the same each time the client asks
	verifier  *auth.Verifier
	endpoint  *session.Endpoint
	driver    *driver.Driver
	carriers  []carrier.Carrier // oldest first
	heard     time.Time         // when a frame came last, a carrier began, or the client attached
	left      time.Time         // when its last carrier ended; at first, when it attached
	back      time.Time         // when it had a carrier again, after it had none; or zero
	missed    string            // the text of NoticeEnded for it, or empty
	closed    bool              // further carriers are closed at once
	skipping  bool              // output up to now is about to be skipped
	skips     bool              // it is not waited for: if it falls far behind, output is skipped
	records   bool              // it is not waited for, and output is kept for it
	follows   bool              // it gets the events in place of the output
	notified  bool              // it is told when the program waits
	forwards  bool              // it may forward connections to what listens on this machine
	guest     bool              // it has a share: what it types is all that counts of it
	until     int64             // when that ends, in Unix seconds
	told      bool              // those that follow know that it is there
	appeared  bool              // another session has, since it follows this one
	from      uint64            // the first frame of the output that it gets, if that leaves out what no client has seen
	skippedTo uint64            // the frame up to which that was last
	resting   bool              // it is sent nothing: in a flood, watchers get a snapshot at times

	takesSnapshots    bool
	lines, usualLines int      // of scrollback in its next snapshot, and in those after that
	wantsSnapshot     bool     // its endpoint has asked for one that is not ready
	hinting           *hinting // nil if it gets no hints
	displacedBy       string
	revoked           string // why it has lost its access
	toldRevoked       bool
}

// displacer names a client for the one that it displaces. Only the part before the machine is proven.
func (a *attachment) displacer() string {
	if a.machine == "" {
		return a.client
	}
	return a.client + " (its machine says that it is " + a.machine + ")"
}

func (a *attachment) connected() bool { return a.driver.Carriers() > 0 }

// away reports whether the client has had no carrier for awayGrace. A client that has just
// attached is about to have one, and one that moves to another network comes back.
func (a *attachment) away(now time.Time) bool {
	return !a.connected() && now.Sub(a.left) >= awayGrace
}

// keepsAgent reports whether a client is connected, or was less than agentGrace ago.
func (a *attachment) keepsAgent() bool {
	return a.connected() || a.left.After(a.since) && time.Since(a.left) < agentGrace
}

// close closes all carriers, also those to come.
func (a *attachment) close() {
	a.closed = true
	for _, c := range a.carriers {
		c.Close()
	}
}

// loginOf returns what the daemon is told of a client's login when it resumes.
func loginOf(open *wire.Open) wire.Resumed {
	return wire.Resumed{
		Account: open.Account, Key: open.Key, Scope: open.Scope, NoPTY: open.NoPTY, Proof: open.Proof,
		Reported: open.Reported, Proven: open.Proven,
	}
}

// isOf reports whether a client that asks again may be that of the attachment. A guest comes by its share only, and nobody
// else by that: the instance is no secret. Another client may prove its account in another way than before.
func (a *attachment) isOf(open *wire.Open) bool {
	return a.guest == (open.Guest != nil) && (!a.guest || bytes.Equal(a.login.Key, open.Key))
}

// loggedInWith reports whether the client has logged in with the key that has a SHA-256, or with a
// certificate of that key.
func (a *attachment) loggedInWith(sum []byte) bool {
	if len(a.login.Key) == 0 {
		return false
	}
	blob := a.login.Key
	if key, err := auth.ParseUserKey(blob); err == nil {
		blob = auth.PlainKey(key).Marshal()
	}
	got := sha256.Sum256(blob)
	return bytes.Equal(got[:], sum)
}

// isProgram reports whether a client is told of the progress.
func (a *attachment) isProgram() bool {
	return a.hinting != nil && a.hinting.level >= wire.HintsProgram
}

func (a *attachment) presence() wire.Presence {
	return wire.Presence{Number: a.number, Role: a.asked, Client: a.client}
}

// tell sends a notice on the carriers that there are.
func (a *attachment) tell(code byte, text string) {
	a.endpoint.Announce(code, text)
	a.driver.Wake()
}

// awaySince returns since when a client has had no carrier, or owes an ack and is not heard, or zero.
func (a *attachment) awaySince() time.Time {
	since := a.endpoint.UnackedSince()
	switch {
	case !a.connected():
		return a.left
	case !since.IsZero() && since.Before(a.heard):
		return a.heard
	}
	return since
}
