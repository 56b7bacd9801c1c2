package main

import (
	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/cmd/qt/internal/examine"
	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/doctor"
)

func doctorCommand() *cobra.Command {
	var opts options
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor [flags] [user@]host",
		Short: "Find out what works from here to a host, and what to do about the rest",
		Long: `Find out what works from here to a host ("." is this machine), and what to do about the rest.

A line has a state, the name of a check, what was found and, behind a dash, what to do.
The states are ok, warn (sessions work, and less well than they could), fail, and skip:
it was not checked. The exit status is 1 if a check fails, 0 if none does, and 255 if
qt cannot look, as for wrong flags. With --json, print an array with an object for each line:
id, state, found, todo (left out if there is nothing to do).

  settings   the settings file is valid
  state      what qt learns of servers can be kept
  name       the host's name resolves
  udp, tcp   the daemon answers
  mtu        packets of QUIC are not too large for the path
  nat        whether a NAT is between here and the server
  paths      what each network interface can do
  hostkey    the daemon's key is known
  auth       the login works
  version    of both ends
  clock      of both machines
  limits     sessions and memory that the server lets you have
  linger     whether sessions live on when you log out of the server

The host's key is not accepted here, and nothing is changed on the host.`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var report doctor.Report
			_, err := configs.LoadClient("")
			if err != nil {
				report.Add("settings", doctor.Fail, "correct the file", "%v", err)
			} else {
				file, _ := configs.ClientFile()
				report.AddSettings(file)
			}
			if err == nil {
				addState(&report)
				report = append(report, examine.Host(c.Context(), args[0], &opts.Options)...)
			}
			if err := report.Print(c.OutOrStdout(), asJSON); err != nil {
				return err
			}
			if report.Failed() {
				return exitError(1)
			}
			return nil
		},
	}
	addTargetFlags(c, &opts)
	complete(c, &opts, hostNames)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// addState tells whether qt can keep what it learns of servers.
func addState(r *doctor.Report) {
	dir, err := reach.StateDir()
	if err == nil {
		err = doctor.TryWrite(dir)
	}
	if err != nil {
		r.Add("state", doctor.Warn,
			"make it writable, make room, or set XDG_STATE_HOME: without it, each connection begins by ssh", "%v", err)
		return
	}
	r.Add("state", doctor.OK, "", "%s can be written", dir)
}
