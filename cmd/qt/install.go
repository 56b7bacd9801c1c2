package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/client/install"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/terminal"
)

func installCommand() *cobra.Command {
	var opts options
	var from string
	c := &cobra.Command{
		Use:   "install [flags] [user@]host",
		Short: "Copy qtd to an account on a host, by ssh",
		Long: `Copy the daemon, qtd, into ~/.local/bin of an account on a host, by one login of ssh with
your configuration. It needs no rights but those of the account. qt connect finds it there
and starts it when needed.

The qtd for the host's platform is taken from beside qt, from the directory of its
platform in a release, or from the file that --from names. Sessions that run there continue.`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return installOn(c.Context(), args[0], &opts, from)
		},
	}
	addLoginFlags(c, &opts)
	c.Flags().StringVar(&from, "from", "", "copy this `file`")
	c.MarkFlagFilename("from")
	complete(c, &opts, hostNames)
	return c
}

// installOn copies qtd to a host.
func installOn(ctx context.Context, host string, opts *options, from string) error {
	var report *install.Report
	err := reach.RunAt(ctx, host, &opts.Options, true, install.Command, func(p *install.Process) (err error) {
		report, err = install.Install(p, func(platform install.Platform) (*install.Binary, error) {
			return findDaemon(from, platform)
		}, func(b *install.Binary) {
			say(copying, b.Version, b.Platform, terminal.Bytes(uint64(len(b.Content))), host)
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("could not install qtd on %s: %w", host, err)
	}
	say("%s", installed(report, host))
	if report.First != "" {
		say(anotherFirst, report.First, host)
	}
	return nil
}

// findDaemon returns the qtd to copy: that of a file, or else the one that belongs to this
// program.
func findDaemon(from string, p install.Platform) (*install.Binary, error) {
	if from != "" {
		return install.Open(from)
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return nil, err
	}
	return install.Find(filepath.Dir(exe), p)
}
