package main

import (
	"github.com/quicterm/quicterm/quicterm/client/forwards"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// options are the flags of a command that reaches a server.
type options struct {
	reach.Options
	predict string // or empty: as the setting says
	escape  string // or empty: as the setting says
	role    wire.Role
	ownSize bool // with role share: the session takes the size of our terminal
	replay  wire.Replay
	detach  bool // start a session without attaching to it
	json    bool // with detach: print JSON
	forward forwardFlags

	forwards *forwards.Forwards // those of a session that runs, or nil
}

// splitHost separates the host, with which arguments begin, from the rest. A lone argument is a host, never a
// session; without any, the host is this machine.
func splitHost(args []string) (host string, rest []string) {
	if len(args) == 0 {
		return reach.ThisMachine, nil
	}
	return args[0], args[1:]
}
