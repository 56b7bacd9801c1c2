package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/hub"
	"github.com/quicterm/quicterm/quicterm/terminal"
)

func hostsCommand() *cobra.Command {
	var opts options
	var asJSON bool
	c := &cobra.Command{
		Use:   "hosts [flags]",
		Short: "List the hosts that a hub leads to",
		Long: `List the hosts that are connected to the hub of the setting hub and that the hub shows to you. qt
connect and the other commands reach them by these names, where neither ssh's configuration nor the
DNS knows another host of that name.

With --json, print an array with an object for each:

  name, tags           as the hub lists the host
  version              of its daemon, as the host says
  keys                 fingerprints of its host keys, as the host says
  since                when it has connected to the hub`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			hosts, at, err := reach.Hosts(c.Context(), &opts.Options)
			if err != nil {
				return err
			}
			if asJSON {
				return printIndented(c.OutOrStdout(), append([]hub.Entry{}, hosts...))
			}
			if len(hosts) == 0 {
				_, err := fmt.Fprintf(c.ErrOrStderr(), "qt: hub %s knows no host that you may see\n", at)
				return err
			}
			return printHosts(c.OutOrStdout(), hosts, time.Now())
		},
	}
	addTargetFlags(c, &opts)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// printHosts prints entries, in which nothing controls a terminal.
func printHosts(w io.Writer, hosts []hub.Entry, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tTAGS\tVERSION\tSINCE")
	for _, h := range hosts {
		since := "-"
		if !h.Since.IsZero() {
			since = terminal.Duration(max(now.Sub(h.Since), 0))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", h.Name, dashed(strings.Join(h.Tags, ",")), dashed(h.Version), since)
	}
	return t.Flush()
}

func dashed(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
