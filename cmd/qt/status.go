package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm"
)

func statusCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show how the clients on this machine are doing",
		Long: `Show your clients that run on this machine, those without a terminal too: how the
session of each is doing, and over which paths it reaches its server.

With --json that is an array with an object for each client. Times are as in RFC
3339, those that end in _ms are in milliseconds. What is not known is left out.

  pid, host, session       of the client, as it was called, on the server
  state, since             live, moving, suspect or offline; connecting at first
  attempts                 to reach the server since it was heard last
  rtt_ms                   round trip from end to end
  resumed                  how often another connection has taken over
  unacknowledged           frames of input that the server does not have
  duplicates, reordered    frames that came again, or before an earlier one
  corrupted                packets and streams with bytes that are no frame
  gaps, lost_frames, lost_bytes   what was not there any more when it was asked for
  resends, resent_bytes    packets that were sent again
  paths                    an array with an object for each connection:
    interface, local, remote      where its packets go
    state, since           as above, or standby
    rtt_ms, loss           loss is of packets that were sent, from 0 to 1
    sent_bytes, received_bytes
    moved                  how often its packets have changed their way
    last_contact           when the server was heard`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			reports, err := askClients()
			if err != nil {
				return err
			}
			if asJSON {
				return printReports(c.OutOrStdout(), reports)
			}
			if len(reports) == 0 {
				say("no client is running")
			}
			for i, r := range reports {
				if i > 0 {
					fmt.Fprintln(c.OutOrStdout())
				}
				fmt.Fprintln(c.OutOrStdout(), r.text(time.Now()))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// showStatus has qt status show a session, until stop is called.
func showStatus(host string, s *quicterm.Session, verbose bool) (stop func()) {
	stop, err := serveStatus(func() *report { return newReport(host, s.Status()) })
	if err == nil {
		return stop
	}
	if verbose {
		say("qt status does not show this client: %v", err)
	}
	return func() {}
}

// A report is the status of a client as JSON shows it, and as one client tells
// it another. Nothing in it controls a terminal.
type report struct {
	PID            int          `json:"pid"`
	Host           string       `json:"host"`
	Session        string       `json:"session"`
	State          string       `json:"state"`
	Since          time.Time    `json:"since,omitzero"`
	Attempts       int          `json:"attempts"`
	RTT            float64      `json:"rtt_ms,omitzero"`
	Resumed        int          `json:"resumed"`
	Unacknowledged int          `json:"unacknowledged"`
	Duplicates     uint64       `json:"duplicates"`
	Reordered      uint64       `json:"reordered"`
	Corrupted      uint64       `json:"corrupted"`
	Gaps           uint64       `json:"gaps"`
	LostFrames     uint64       `json:"lost_frames"`
	LostBytes      uint64       `json:"lost_bytes"`
	Resends        uint64       `json:"resends"`
	ResentBytes    uint64       `json:"resent_bytes"`
	Paths          []pathReport `json:"paths"`
}

type pathReport struct {
	Interface   string    `json:"interface,omitzero"`
	Local       string    `json:"local"`
	Remote      string    `json:"remote"`
	State       string    `json:"state"`
	Since       time.Time `json:"since,omitzero"`
	RTT         float64   `json:"rtt_ms,omitzero"`
	Loss        float64   `json:"loss"`
	Sent        uint64    `json:"sent_bytes"`
	Received    uint64    `json:"received_bytes"`
	Moved       int       `json:"moved"`
	LastContact time.Time `json:"last_contact,omitzero"`
}

// newReport returns the report of this process about its session on a host.
func newReport(host string, st quicterm.Status) *report {
	c := st.Counters
	r := &report{
		PID:            os.Getpid(),
		Host:           printable(host),
		Session:        printable(st.Name),
		State:          st.Link.State.String(),
		Since:          wallClock(st.Link.Since),
		Attempts:       st.Link.Attempts,
		RTT:            milliseconds(st.RTT),
		Resumed:        st.Resumed,
		Unacknowledged: st.Unacked,
		Duplicates:     c.Duplicates,
		Reordered:      c.Reordered,
		Corrupted:      c.Corrupted,
		Gaps:           c.Gaps,
		LostFrames:     c.LostFrames,
		LostBytes:      c.LostBytes,
		Resends:        c.Resends,
		ResentBytes:    c.ResentBytes,
		Paths:          []pathReport{},
	}
	for _, p := range st.Paths {
		r.Paths = append(r.Paths, pathReport{
			Interface:   printable(p.Interface),
			Local:       address(p.Local),
			Remote:      address(p.Remote),
			State:       p.State,
			Since:       wallClock(p.Since),
			RTT:         milliseconds(p.RTT),
			Loss:        p.Loss,
			Sent:        p.Sent,
			Received:    p.Received,
			Moved:       p.Moved,
			LastContact: wallClock(p.Heard),
		})
	}
	return r
}

// wallClock returns a time to the millisecond that is the same everywhere.
func wallClock(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// address writes an address, or only the port if no more is known.
func address(a netip.AddrPort) string {
	if !a.Addr().IsValid() {
		return fmt.Sprintf("*:%d", a.Port())
	}
	return printable(a.String()) // the zone is a name
}

func printReports(w io.Writer, reports []*report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(reports)
}

// text returns a report in lines for people, the last without its end.
func (r *report) text(now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, process %d, session %s: %s", r.Host, r.PID, r.Session, r.State)
	if !r.Since.IsZero() {
		fmt.Fprintf(&b, " since %s, %s", r.Since.Local().Format(time.TimeOnly), before(now, r.Since))
	}
	if r.Attempts > 0 {
		fmt.Fprintf(&b, ", attempts %d", r.Attempts)
	}
	fmt.Fprintf(&b, "\n  round trip %s, resumes %d, input not acknowledged: %d frames\n",
		roundTrip(r.RTT), r.Resumed, r.Unacknowledged)
	fmt.Fprintf(&b, "  duplicates dropped %d, reordered %d, corrupted %d, gaps %d (%s), resends %d (%s)\n",
		r.Duplicates, r.Reordered, r.Corrupted, r.Gaps, size(r.LostBytes), r.Resends, size(r.ResentBytes))
	// A path is a column, for a narrow terminal and long addresses.
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(*pathReport) string) {
		if len(r.Paths) == 0 {
			return
		}
		fmt.Fprintf(t, "  %s", name)
		for i := range r.Paths {
			fmt.Fprintf(t, "\t%s", cell(&r.Paths[i]))
		}
		fmt.Fprintln(t)
	}
	row("interface", func(p *pathReport) string {
		if p.Interface == "" {
			return "-"
		}
		return p.Interface
	})
	row("local", func(p *pathReport) string { return p.Local })
	row("remote", func(p *pathReport) string { return p.Remote })
	row("state", func(p *pathReport) string { return p.State })
	row("since", func(p *pathReport) string { return before(now, p.Since) })
	row("round trip", func(p *pathReport) string { return roundTrip(p.RTT) })
	row("loss", func(p *pathReport) string { return fmt.Sprintf("%.1f %%", 100*p.Loss) })
	row("sent", func(p *pathReport) string { return size(p.Sent) })
	row("received", func(p *pathReport) string { return size(p.Received) })
	row("moves", func(p *pathReport) string { return strconv.Itoa(p.Moved) })
	row("last contact", func(p *pathReport) string { return before(now, p.LastContact) })
	t.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// before writes how long before now a time was.
func before(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return ago(now.Sub(t)) + " ago"
}

func roundTrip(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", ms)
}

// size writes a number of bytes.
func size(n uint64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/1000, "kMGTPE"
	for v >= 999.95 {
		v, units = v/1000, units[1:]
	}
	return fmt.Sprintf("%.1f %cB", v, units[0])
}
