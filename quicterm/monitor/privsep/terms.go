//go:build linux || darwin

package privsep

import (
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Command is the argument that makes the daemon's executable its network half, on Linux.
const Command = "network"

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
