package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/hub/link"
	"github.com/quicterm/quicterm/quicterm/machine/confine"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// linkCommand returns the hidden command that the daemon runs to be reached through a hub.
func linkCommand() *cobra.Command {
	var level string
	var cell confine.Cell
	c := &cobra.Command{
		Use:    privsep.LinkCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			spawn.CloseInherited(privsep.ChannelFD + 1)
			limitMemory()
			os.WriteFile("/proc/self/comm", []byte("qtd-link"), 0) // for ps; its program is a link in /proc
			monitor, err := privsep.InheritedLink()
			if err != nil {
				return err
			}
			queue := newLog(os.Stderr, levelOf(level))
			defer queue.Close()
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			signal.Ignore(syscall.SIGHUP)
			return link.Run(ctx, monitor, func() error { return enterLink(&cell, queue.Logger()) }, queue.Logger())
		},
	}
	c.Flags().StringVar(&level, "log-level", "info", "")
	c.Flags().Uint32Var(&cell.UID, "uid", 0, "")
	c.Flags().Uint32Var(&cell.GID, "gid", 0, "")
	c.Flags().StringVar(&cell.Root, "root", "", "")
	c.Flags().BoolVar(&cell.Mounts, "mounts", false, "")
	return c
}

// enterLink confines this process: of root's daemon to a cell, otherwise to the descriptors that it has.
func enterLink(cell *confine.Cell, log *slog.Logger) error {
	missing := []error(nil)
	var err error
	if os.Geteuid() == 0 {
		missing, err = cell.Enter()
	} else if lacks := confine.Filter(); lacks != nil {
		missing = append(missing, lacks)
	}
	if err != nil {
		return fmt.Errorf("confine the process of the hub: %w", err)
	}
	for _, err := range missing {
		log.Warn("the process of the hub is confined less than it should be", "error", err)
	}
	return nil
}
