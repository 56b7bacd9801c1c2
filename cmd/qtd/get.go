//go:build linux || darwin

package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/holder/offering"
)

func getCommand() *cobra.Command {
	return &cobra.Command{
		Use:   offering.Use,
		Short: offering.Short,
		Long:  offering.Long,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			if !offering.Files(ctx, args, func(line string) { fmt.Fprintf(os.Stderr, "qtd: %s\n", line) }) {
				return errChecks
			}
			return nil
		},
	}
}
