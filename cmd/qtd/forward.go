//go:build linux || darwin

package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/forward"
	"github.com/quicterm/quicterm/quicterm/forward/permit"
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
	return forward.Serve(ctx, polled(os.Stdin), polled(os.Stdout), rules)
}
