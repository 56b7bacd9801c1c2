//go:build linux || darwin

package main

import (
	"cmp"
	"context"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/forward"
	"github.com/quicterm/quicterm/quicterm/forward/permit"
	"github.com/quicterm/quicterm/quicterm/holder/agent"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// forwardConnections is the program of a side pipe. It has the rights of the account, and the rules by which the
// monitor limits its client.
func forwardConnections([]string) error {
	rules, err := permit.Decode(os.Getenv(permit.Variable))
	if err != nil {
		return err
	}
	syscall.Umask(int(cmp.Or(rules.Mask, 0o177))) // it makes nothing but sockets
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGHUP, syscall.SIGTERM)
	defer stop()
	polled := func(f *os.File) *os.File { // a Close ends a Read of it
		syscall.SetNonblock(int(f.Fd()), true)
		return os.NewFile(f.Fd(), f.Name())
	}
	base := rundir.Base(os.Getenv(agent.BaseVariable))
	listen := func(id wire.AgentID) (net.Listener, error) { return agent.ListenFor(base, id) }
	return forward.Serve(ctx, polled(os.Stdin), polled(os.Stdout), rules, listen)
}
