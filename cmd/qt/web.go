package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/cmd/qt/internal/browser"
)

func webCommand() *cobra.Command {
	var opts options
	var code bool
	var page string
	c := &cobra.Command{
		Use:   "web [flags] [[user@]host [session]]",
		Short: "Open a session in a browser of this machine",
		Long: `Serve a page to the browser of this machine, in which it is a client as qt is: it opens a session
on a host, or on this machine if none is given, or attaches to the session that is named. ssh logs
in as it always does, for a token that the page uses up. The page connects to the host's daemon
by TCP through this command, which sees sealed bytes: leave it running. Where only ssh gets through,
each connection is a login of ssh, which must not ask for anything then. Other accounts of this
machine cannot use the page, as they do not have its link, which is good once.

With --qr, print a link to the page that the host's daemon serves (its setting web), as a QR code too,
and end. The link is good once, for 2 minutes: the browser that opens it can be remembered then, and
needs no link any more. qt devices lists such browsers. Show the code to nobody else.`,
		Args: usage(cobra.MaximumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			host, rest := splitHost(args)
			if code {
				return printLink(c.Context(), host, strings.Join(rest, ""), page, &opts)
			}
			if page != "" {
				return errors.New("--url is for --qr: qt web serves the page itself")
			}
			return browser.Serve(c.Context(), host, strings.Join(rest, ""), &opts.Options)
		},
	}
	addPortFlag(c, &opts)
	addLoginFlags(c, &opts)
	c.Flags().BoolVar(&code, "qr", false, "print a link for another device, and its QR code")
	c.Flags().StringVar(&page, "url", "", "with --qr: `address` of the server's page, if a proxy serves it: https://...")
	complete(c, &opts, hostNames, sessionNames)
	return c
}
