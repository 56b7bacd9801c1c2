package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/holder/offering"
)

// getCommand returns what runs on a server, where qt may be too: it is the same as qtd get.
func getCommand() *cobra.Command {
	return &cobra.Command{
		Use:   offering.Use,
		Short: offering.Short,
		Long:  offering.Long,
		Args:  usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			if !offering.Files(ctx, args, func(line string) { say("%s", line) }) {
				return exitError(1)
			}
			return nil
		},
	}
}
