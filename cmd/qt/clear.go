package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func clearCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "clear-history [flags] [user@]host session...",
		Short: "Make sessions forget their earlier output",
		Long: `Make sessions forget the output that their clients have had: the server keeps some of it to
show it to the next client. The screen stays, and so does output that no client has had. So do the
scrollback of your own terminal, and recordings.`,
		Args: usage(cobra.MinimumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return withClient(c.Context(), args[0], &opts, func(ctx context.Context, a *access) error {
				return each(args[1:], func(name string) error {
					cleared, err := a.client.Clear(ctx, name)
					if err != nil {
						return err
					}
					fmt.Printf(historyCleared+"\n", name, cleared.Bytes, cleared.Lines)
					if cleared.Kept > 0 {
						say(historyKept, cleared.Kept)
					}
					return nil
				})
			})
		},
	}
	addTargetFlags(c, &opts)
	complete(c, &opts, manySessions...)
	return c
}
