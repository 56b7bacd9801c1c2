package main

import (
	"context"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/mcp"
	"github.com/quicterm/quicterm/quicterm/version"
)

func mcpCommand() *cobra.Command {
	var opts options
	var hosts []string
	var readOnly bool
	c := &cobra.Command{
		Use:   "mcp [flags]",
		Short: "Serve sessions to a coding agent, by the Model Context Protocol",
		Long: `Serve sessions to a coding agent, by the Model Context Protocol on standard input and output. Its tools list,
start and end sessions, run command lines in them, type, wait, and show screens and output: see the commands of
these names. The agent reaches the hosts of --host only, or this machine without it.

It asks no questions: a server whose key is not known is refused, and so is a key that needs a passphrase or a touch.`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if len(hosts) == 0 {
				hosts = []string{reach.ThisMachine}
			}
			for _, host := range hosts {
				if _, _, err := reach.ParseTarget(host, &opts.Options); err != nil {
					return err
				}
			}
			opts.Unattended = true
			os.Setenv("TERM", "xterm-256color") // which the tools emulate, whatever terminal the agent runs in
			ctx, stop := reach.UntilSignal(c.Context(), syscall.SIGINT)
			defer stop()
			return mcp.Serve(ctx, mcp.Config{
				Version: version.String(), Hosts: hosts, ReadOnly: readOnly,
				Reach: func(ctx context.Context, host string, f reach.Call) error {
					return reach.With(ctx, host, &opts.Options, f)
				},
			})
		},
	}
	addTargetFlags(c, &opts)
	c.Flags().StringArrayVar(&hosts, "host", nil,
		"`[user@]host` that the agent may reach; may be repeated (default: this machine)")
	c.Flags().BoolVar(&readOnly, "read-only", false, "only list sessions, and show what they print")
	return c
}
