package main

import (
	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/client"
)

func killCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "kill [flags] [user@]host session",
		Short: "End a session and its program",
		Args:  usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return withClient(c.Context(), args[0], &opts, func(conn *client.Client, _ *configs.Client) error {
				return conn.Kill(c.Context(), args[1])
			})
		},
	}
	addTargetFlags(c, &opts)
	return c
}
