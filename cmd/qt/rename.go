package main

import (
	"context"

	"github.com/spf13/cobra"
)

func renameCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "rename [flags] [[user@]host] session name",
		Short: "Give a session another name",
		Long: `Give a session another name, as for qt connect --session: up to 32 letters, digits, dots,
dashes and underscores. Its clients stay attached. Without a host, the session is one of this machine.`,
		Args: usage(cobra.RangeArgs(2, 3)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 {
				args = append([]string{thisMachine}, args...)
			}
			return withClient(c.Context(), args[0], &opts, func(ctx context.Context, a *access) error {
				return a.client.Rename(ctx, args[1], args[2])
			})
		},
	}
	addTargetFlags(c, &opts)
	complete(c, &opts, hostNames, sessionNames)
	return c
}
