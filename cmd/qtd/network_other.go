//go:build darwin

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/machine/logqueue"
	"github.com/quicterm/quicterm/quicterm/monitor"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/server"
)

// networkOf returns the half of a daemon that talks to clients, in this process.
func networkOf(_ context.Context, m *monitor.Monitor, _ *configs.Server, log *logqueue.Queue) (privsep.Network, error) {
	return server.NewServer(m.Calls(), m.Setup(), log.Logger())
}

// keepSecrets does nothing: this system protects the memory of root's processes.
func keepSecrets() (within func(func() error) error, err error) { return nil, nil }

// networkCommand returns no command: there is no such process here.
func networkCommand() *cobra.Command { return &cobra.Command{Use: privsep.Command, Hidden: true} }
