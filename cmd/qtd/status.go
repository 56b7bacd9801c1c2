//go:build linux || darwin

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/monitor"
)

const (
	// controlTime bounds how long the daemon may take: it asks all sessions, some seconds.
	controlTime = 20 * time.Second

	// maxControl bounds what it answers: some thousand sessions with their clients.
	maxControl = 64 << 20

	// drainInterval is the time between two requests for the number of sessions that are left.
	drainInterval = 2 * time.Second
)

func statusCommand() *cobra.Command {
	var config string
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the daemon of this account, and how much it serves",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			status, err := askStatus(c.Context(), config)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(status)
			}
			printStatus(c.OutOrStdout(), status)
			return nil
		},
	}
	addConfigFlag(c, &config)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func drainCommand() *cobra.Command {
	var config string
	var off, wait bool
	c := &cobra.Command{
		Use:   "drain",
		Short: "Start no new sessions, before the machine is shut down",
		Long: `Make the daemon of this account start no new sessions. Existing ones continue, and clients
come back to them. qtd status shows how many are left; --wait returns when none is. --off or
a restart of the daemon ends the draining.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := control(c.Context(), config, http.MethodPost, fmt.Sprintf("/drain?on=%t", !off), nil)
			if err != nil || !wait || off {
				return err
			}
			return awaitDrained(c.Context(), c.ErrOrStderr(), config)
		},
	}
	addConfigFlag(c, &config)
	c.Flags().BoolVar(&off, "off", false, "start new sessions again")
	c.Flags().BoolVar(&wait, "wait", false, "return when no session is left")
	return c
}

// awaitDrained returns when no session is left. It says how many are, each time that changes.
func awaitDrained(ctx context.Context, w io.Writer, config string) error {
	for last := -1; ; time.Sleep(drainInterval) {
		status, err := askStatus(ctx, config)
		if err != nil {
			return err
		}
		if !status.Draining {
			return errors.New("the daemon no longer drains: it was restarted, or qtd drain --off ended it")
		}
		left := len(status.Sessions) + status.Silent
		if left == 0 {
			return nil
		}
		if left != last {
			fmt.Fprintf(w, "%s left\n", number(left, "session"))
		}
		last = left
	}
}

func askStatus(ctx context.Context, config string) (*monitor.Status, error) {
	status := new(monitor.Status)
	return status, ask(ctx, config, http.MethodGet, "/status", nil, status)
}

// ask is control for an answer in JSON.
func ask(ctx context.Context, config, method, path string, form url.Values, answer any) error {
	raw, err := control(ctx, config, method, path, form)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("answer of the daemon: %w", err)
	}
	return nil
}

// control sends a request to the daemon of this account, over its control socket.
func control(ctx context.Context, config, method, path string, form url.Values) ([]byte, error) {
	settings, err := configs.LoadServer(config)
	if err != nil {
		return nil, err
	}
	var dialErr error
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var c net.Conn
		c, dialErr = dialControl(rundir.Base(settings.RuntimeDir))
		return c, dialErr
	}}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, controlTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://qtd"+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := transport.RoundTrip(request)
	if dialErr != nil {
		return nil, dialErr
	}
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxControl))
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	if answer.StatusCode == http.StatusBadRequest { // its reason is for people
		return nil, errors.New(strings.TrimSpace(string(body)))
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the daemon answers %s: %s", answer.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}

// errNoControl is the error of a control socket without a listener.
var errNoControl = errors.New("no daemon of this account runs here")

func dialControl(base rundir.Base) (net.Conn, error) {
	uid := uint32(os.Geteuid())
	dirs := base.Dirs(uid)
	if uid == 0 {
		dirs = append([]string{base.System()}, dirs...)
	}
	for _, dir := range dirs {
		c, err := rundir.Dial(filepath.Join(dir, monitor.ControlSocket), uid)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
	}
	if uid != 0 {
		return nil, fmt.Errorf("%w; that of root answers root only: use sudo", errNoControl)
	}
	return nil, fmt.Errorf("%w: qtd serve starts one", errNoControl)
}

func printStatus(w io.Writer, s *monitor.Status) {
	drains := ""
	if s.Draining {
		drains = ", draining"
	}
	clients := 0
	var memory uint64
	for _, one := range s.Sessions {
		clients += len(one.Clients)
		memory += one.Memory
	}
	fmt.Fprintf(w, "%s, process %d, since %s%s\n", s.Software, s.PID, s.Started.Local().Format(time.DateTime), drains)
	fmt.Fprintf(w, "%s, %s, %s, memory %s, output %s\n", number(len(s.Sessions), "session"), number(clients, "client"),
		number(int(s.Connections), "connection"), size(s.Memory), size(memory))
	if s.Silent > 0 {
		fmt.Fprintf(w, "%s not answer\n", number(s.Silent, "session does", "sessions do"))
	}
}

func printSessions(w io.Writer, sessions []monitor.SessionStatus, now time.Time) error {
	if len(sessions) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "ACCOUNT\tSESSION\tID\tSTATE\tFOR\tOUTPUT\tHELD BY\tCLIENTS")
	for _, one := range sessions {
		var all []string
		for _, c := range one.Clients {
			text := c.Client + " " + c.Kind
			if c.RTT > 0 {
				text += fmt.Sprintf(" %.3g ms", c.RTT)
			}
			if c.Role != "writer" {
				text += " " + c.Role
			}
			all = append(all, text)
		}
		account, holder := one.Account, one.Holder
		if account == "" {
			account = fmt.Sprint(one.UID)
		}
		fmt.Fprintf(t, "%s\t%s\t%.8s\t%s\t%s\t%s\t%s\t%s\n", account, one.Name, one.ID, one.State,
			now.Sub(one.Since).Round(time.Second), size(one.Memory), holder, strings.Join(all, ", "))
	}
	return t.Flush()
}

// number returns a count with its noun, of which several is the plural if that is not with an s.
func number(n int, noun string, several ...string) string {
	if n != 1 {
		noun += "s"
		if len(several) > 0 {
			noun = several[0]
		}
	}
	return fmt.Sprint(n, " ", noun)
}

func size(bytes uint64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", (bytes+1<<10-1)>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
