package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/cmd/qt/internal/status"
	"github.com/quicterm/quicterm/quicterm/client"
)

func statusCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show the connections of the clients on this machine",
		Long: `Show your clients on this machine, also those without a terminal: the state of
each session, and the paths to its server.

With --json, print an array with an object for each client. Times are as in RFC
3339; numbers whose names end in _ms are milliseconds. Unknown values are left
out.

  pid                      process of the client
  host                     as given to the client
  session                  name on the server, empty of a client that only forwards
  state, since             live, moving, suspect or offline; connecting at first;
                           of a client that does not answer, stopped or silent:
                           only its process and session are known
  attempts                 to reach the server since its last packet
  rtt_ms                   round trip from end to end
  resumed                  how often another connection has taken over
  unacknowledged           frames of input that the server has not acknowledged
  duplicates, reordered    frames that came more than once, or before an earlier one
  corrupted                packets and streams with invalid bytes
  gaps, lost_frames, lost_bytes   output that the server had not kept
  resends, resent_bytes    packets that were sent again
  paths                    an array with an object for each connection:
    interface, local, remote      network interface and addresses
    state, since           as above, or standby
    rtt_ms                 round trip
    loss                   share of the sent packets that were lost, from 0 to 1
    sent_bytes, received_bytes
    moved                  how often its local address or interface has changed
    last_contact           time of the last packet from the server
  forwards                 an array with an object for each:
    kind                   L, R, D or A, as the flags of qt connect
    listen, target         addresses; a connection by SOCKS names its target
    open                   connections
    sent_bytes, received_bytes    to the server and from it
    signatures, signed     of A: how many the server has asked for, and when last`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			reports, err := status.Ask()
			if err != nil {
				return err
			}
			if asJSON {
				return status.PrintJSON(c.OutOrStdout(), reports)
			}
			if len(reports) == 0 {
				say("no client is running")
			}
			for i, r := range reports {
				if i > 0 {
					fmt.Fprintln(c.OutOrStdout())
				}
				fmt.Fprintln(c.OutOrStdout(), r.Text(time.Now()))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// showStatus makes qt status show a session until stop is called.
func showStatus(host string, s *client.Session, opts *options) (stop func()) {
	return showReport(s.Name(), opts, func() *status.Report { return status.New(host, s.Status(), opts.forwards) })
}

func showReport(session string, opts *options, report func() *status.Report) (stop func()) {
	stop, err := status.Serve(session, report)
	if err == nil {
		return stop
	}
	if opts.Verbose {
		say("qt status does not show this client: %v", err)
	}
	return func() {}
}
