package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func clearCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "clear-history [flags] [user@]host session",
		Short: "Make a session forget its earlier output",
		Long: `Make a session forget the output that its clients have had: the server keeps some of it to
show it to the next client. The screen stays, and so does output that no client has had. So do the
scrollback of your own terminal, and recordings.`,
		Args: usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return withClient(c.Context(), args[0], &opts, func(ctx context.Context, a *access) error {
				cleared, err := a.client.Clear(ctx, args[1])
				if err != nil {
					return err
				}
				fmt.Printf(historyCleared+"\n", args[1], cleared.Bytes, cleared.Lines)
				if cleared.Kept > 0 {
					say(historyKept, cleared.Kept)
				}
				return nil
			})
		},
	}
	addTargetFlags(c, &opts)
	complete(c, &opts, hostNames, sessionNames)
	return c
}
