package main

import (
	"context"

	"github.com/spf13/cobra"
)

func killCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "kill [flags] [user@]host session",
		Short: "End a session and its program",
		Args:  usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return withClient(c.Context(), args[0], &opts, func(ctx context.Context, a *access) error {
				return a.client.Kill(ctx, args[1])
			})
		},
	}
	addTargetFlags(c, &opts)
	complete(c, &opts, hostNames, sessionNames)
	return c
}
