//go:build linux || darwin

package main

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/doctor"
	"github.com/quicterm/quicterm/quicterm/machine/systemd"
	"github.com/quicterm/quicterm/quicterm/monitor"
)

func doctorCommand() *cobra.Command {
	var config string
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find out whether a daemon of this account works, and what to do about the rest",
		Long: `Find out whether a daemon of this account works on this machine, and what to do about the
rest. Run it as the account whose daemon it is, such as root.

A line has a state, the name of a check, what was found and, behind a dash, what to do.
The states are ok, warn (sessions work, and less well than they could), fail, and skip:
it was not checked. The exit status is 1 if a check fails, and 0 if none does. With
--json, print an array with an object for each line: id, state, found, todo (left out
if there is nothing to do).

  settings   the settings file is valid
  daemon     one runs, its version, and that it starts sessions
  ports      those of the daemon are open, or free; of firewalls, qt doctor knows from outside
  hostkey    the host's private keys can be read, by their owner only
  state      the directory of keys can be written
  runtime    the directories of sockets
  sshd       its configuration says who gets in, where root's daemon obeys it
  buffers    how large UDP buffers may be
  limits     memory and files
  linger     what a logout ends
  holders    versions of those that run`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			report := examine(c.Context(), config)
			if err := report.Print(c.OutOrStdout(), asJSON); err != nil {
				return err
			}
			if report.Failed() {
				return errChecks
			}
			return nil
		},
	}
	addConfigFlag(c, &config)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// errChecks is the error of a report with a failure, which says all.
var errChecks = errors.New("a check has failed")

func examine(ctx context.Context, config string) (r doctor.Report) {
	settings, err := loadSettings(config, nil, false)
	if err != nil {
		r.Add("settings", doctor.Fail, "correct the file", "%v", err)
		return r
	}
	file := config
	if file == "" {
		file, _ = configs.ServerFile()
	}
	r.AddSettings(file)
	running := addDaemon(ctx, &r, settings, config)
	r = append(r, monitor.Doctor(ctx, monitor.Config{Settings: settings, Software: software()}, running)...)
	addLinger(&r, systemd.EndsAtLogout(ctx))
	return r
}

var errNotStarted = errors.New("none runs")

// addDaemon tells whether a daemon runs that serves this account, and returns its address.
func addDaemon(ctx context.Context, r *doctor.Report, settings *configs.Server, config string) netip.AddrPort {
	var health error
	status, err := askStatus(ctx, config)
	if err == nil {
		_, health = control(ctx, config, http.MethodGet, "/healthz", nil)
	} else if errors.Is(err, errNoControl) { // that of root may serve this account
		grant, askErr := bootstrap.Ask(settings.RuntimeDir, func() error { return errNotStarted })
		if err = askErr; err == nil {
			status.Software = grant.Software
			status.Address, err = netip.ParseAddrPort(grant.Address)
		}
	}
	switch {
	case health != nil:
		r.Add("daemon", doctor.Fail, "qtd drain --off ends a draining; see its log otherwise",
			"it starts no new sessions: %v", health)
	case errors.Is(err, errNotStarted):
		r.Add("daemon", doctor.Warn, "qtd serve starts one; qt connect does too, by ssh, for one account",
			"none runs for this account")
	case err != nil:
		r.Add("daemon", doctor.Fail, "see its log; a restart ends no session", "it does not answer: %v", err)
	case status.Software != software():
		r.Add("daemon", doctor.Warn, "restart it: no session ends", "%s runs, and this is %s", status.Software, software())
	default:
		r.Add("daemon", doctor.OK, "", "%s runs, at %v", status.Software, status.Address)
	}
	return status.Address
}

// addLinger tells what a logout ends, by what the service manager says.
func addLinger(r *doctor.Report, ends string) {
	if ends == "" {
		r.Add("linger", doctor.OK, "", "sessions live on after a logout")
		return
	}
	found, todo := ends, ""
	if i := strings.LastIndex(ends, ": "); i >= 0 {
		found, todo = ends[:i], ends[i+2:]
	}
	r.Add("linger", doctor.Warn, todo, "%s", found)
}
