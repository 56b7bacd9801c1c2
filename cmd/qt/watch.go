package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/wire"
)

func watchCommand() *cobra.Command {
	opts := options{role: wire.RoleWatch}
	c := &cobra.Command{
		Use:   "watch [flags] [[user@]host [session]]",
		Short: "Watch a session, without a way to change it",
		Long: `Watch a session of a host, or of this machine if none is given; if it is not named and there is more
than one, choose from a list. What you type does not reach its program, and the size of your
terminal does not change its size: the server sees to that. The clients that are
attached are told that you watch. Of a screen that is larger than your terminal,
the arrow keys show another part. Ctrl-C leaves.`,
		Args: usage(cobra.MaximumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if !term.IsTerminal(int(os.Stdout.Fd())) {
				return errors.New("watch needs a terminal; qt record writes what it would show into a file")
			}
			return runAttach(c, args, &opts)
		},
	}
	addSessionFlags(c, &opts)
	complete(c, &opts, hostNames, sessionNames)
	return c
}
