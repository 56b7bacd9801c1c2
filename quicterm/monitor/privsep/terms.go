//go:build linux || darwin

package privsep

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// Command is the argument that makes the daemon's executable its network half, on Linux.
const Command = "network"

// What both halves know of the time of a login.
const (
	// RequestsTime bounds how long after its proof a client may send requests that change something.
	// qt sends its only one with the proof. What let the client in is not looked at again for List,
	// Kill and Revoke.
	RequestsTime = 30 * time.Second

	// RightTime is how long it is used for other resumes that a check found no reason to
	// refuse: a client without a path makes many. A refusal is never used again: the file of
	// the keys may have been empty while it was written, and the client ends when it is told.
	RightTime = 30 * time.Second

	// RecheckInterval is how often a login is checked again while its connection lasts.
	RecheckInterval = 24 * time.Hour

	// RetryInterval is when a check that told nothing is made again.
	RetryInterval = 10 * time.Minute
)

// ErrDraining is the error of a client that asks for a new session while the daemon drains.
var ErrDraining = &wire.Error{
	Code: wire.CodeFailed,
	Text: "the server is about to be shut down and starts no new sessions (qtd drain): use another one",
}

// A Withdrawn says why a login does not let its client in any more. Every other error
// of a check says nothing about that, and takes nothing from a client.
type Withdrawn struct {
	Reason  string
	Account bool // no login of the account does, whatever key its holder names
}

func (e *Withdrawn) Error() string { return e.Reason }
