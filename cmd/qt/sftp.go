package main

import (
	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// sftpCommand returns the command that joins its standard streams to the sftp server of a host.
func sftpCommand() *cobra.Command {
	opts := options{forward: forwardFlags{none: true}}
	c := &cobra.Command{
		Use:   "sftp-pipe [flags] [user@]host",
		Short: "Join a program that speaks SFTP to a host's files",
		Long: `Join standard input and output to the host's files, for a program that speaks SFTP, such as
sftp -D "qt sftp-pipe host". Its transfers survive what a session survives.`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return runSession(c.Context(), args[0], &opts, &wire.Attach{Side: wire.SideFiles})
		},
	}
	addTargetFlags(c, &opts)
	addPathFlags(c, &opts)
	complete(c, &opts, hostNames)
	return c
}
