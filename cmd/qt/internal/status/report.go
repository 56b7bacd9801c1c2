// Package status tells what a client does: each client of an account answers qt status, which asks them all.
package status

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

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/forwards"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/terminal"
)

// A Report is the status of a client as qt status --json prints it, and as a client
// sends it to qt status.
type Report struct {
	PID            int       `json:"pid"`
	Host           string    `json:"host"`
	Session        string    `json:"session"`
	State          string    `json:"state"`
	Since          time.Time `json:"since,omitzero"`
	Attempts       int       `json:"attempts"`
	RTT            float64   `json:"rtt_ms,omitzero"`
	Resumed        int       `json:"resumed"`
	Unacknowledged int       `json:"unacknowledged"`
	Duplicates     uint64    `json:"duplicates"`
	Reordered      uint64    `json:"reordered"`
	Corrupted      uint64    `json:"corrupted"`
	Gaps           uint64    `json:"gaps"`
	LostFrames     uint64    `json:"lost_frames"`
	LostBytes      uint64    `json:"lost_bytes"`
	Resends        uint64    `json:"resends"`
	ResentBytes    uint64    `json:"resent_bytes"`
	Paths          []Path    `json:"paths"`

	Forwards []forwards.Status `json:"forwards,omitempty"`
}

// A Path is a connection of a client to its server.
type Path struct {
	Transport   string    `json:"transport"`
	Interface   string    `json:"interface,omitzero"`
	Local       string    `json:"local"` // "-" over ssh, like Remote
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

// The states of a client that does not answer, of which only the process and the session are known.
const (
	stateStopped = "stopped" // by a signal
	stateSilent  = "silent"
)

// New returns the report of this process about its session on a host, and what it forwards.
func New(host string, st client.Status, f *forwards.Forwards) *Report {
	c := st.Counters
	r := &Report{
		PID:            os.Getpid(),
		Host:           host,
		Session:        st.Name,
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
		LostFrames:     c.GapFrames,
		LostBytes:      c.GapBytes,
		Resends:        c.Resends,
		ResentBytes:    c.ResentBytes,
		Paths:          []Path{},
		Forwards:       f.Status(),
	}
	for _, p := range st.Paths {
		r.Paths = append(r.Paths, Path{
			Transport:   p.Transport.String(),
			Interface:   p.Interface,
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

// carrierName says what a path runs over, and why if that is not QUIC. A client of another version
// may not tell.
func carrierName(transport string) string {
	switch transport {
	case "":
		return "-"
	case client.TCP.String():
		return "tcp (udp blocked)"
	}
	return transport
}

// wallClock returns a time in UTC, to the millisecond.
func wallClock(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// address writes an address, or only the port if nothing else is known.
func address(a netip.AddrPort) string {
	if a.Port() == 0 && !a.Addr().IsValid() {
		return "-"
	}
	if !a.Addr().IsValid() {
		return fmt.Sprintf("*:%d", a.Port())
	}
	return a.String()
}

// PrintJSON writes reports as qt status --json does.
func PrintJSON(w io.Writer, reports []*Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(reports)
}

// what says what a client does.
func (r *Report) what() string {
	if r.Session == "" {
		return "forwards"
	}
	return "session " + r.Session
}

// Text returns a report as lines for people, without the end of the last line.
func (r *Report) Text(now time.Time) string {
	switch r.State {
	case stateStopped:
		return fmt.Sprintf("process %d, %s: stopped; fg in its shell, or kill -CONT %d, continues it",
			r.PID, r.what(), r.PID)
	case stateSilent:
		return fmt.Sprintf("process %d, %s: does not answer", r.PID, r.what())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, process %d, %s: %s", reach.Place(r.Host), r.PID, r.what(), r.State)
	if !r.Since.IsZero() {
		fmt.Fprintf(&b, " since %s, %s", r.Since.Local().Format(time.TimeOnly), ago(now, r.Since))
	}
	if r.Attempts > 0 {
		fmt.Fprintf(&b, ", attempts %d", r.Attempts)
	}
	fmt.Fprintf(&b, "\n  round trip %s, resumes %d, input not acknowledged: %d frames\n",
		roundTrip(r.RTT), r.Resumed, r.Unacknowledged)
	fmt.Fprintf(&b, "  duplicates dropped %d, reordered %d, corrupted %d, gaps %d (%s), resends %d (%s)\n",
		r.Duplicates, r.Reordered, r.Corrupted, r.Gaps, terminal.Bytes(r.LostBytes), r.Resends, terminal.Bytes(r.ResentBytes))
	// Each path is a column: addresses are long, and terminals narrow.
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(*Path) string) {
		if len(r.Paths) == 0 {
			return
		}
		fmt.Fprintf(t, "  %s", name)
		for i := range r.Paths {
			fmt.Fprintf(t, "\t%s", cell(&r.Paths[i]))
		}
		fmt.Fprintln(t)
	}
	row("carrier", func(p *Path) string { return carrierName(p.Transport) })
	row("interface", func(p *Path) string {
		if p.Interface == "" {
			return "-"
		}
		return p.Interface
	})
	row("local", func(p *Path) string { return p.Local })
	row("remote", func(p *Path) string { return p.Remote })
	row("state", func(p *Path) string { return p.State })
	row("since", func(p *Path) string { return ago(now, p.Since) })
	row("round trip", func(p *Path) string { return roundTrip(p.RTT) })
	row("loss", func(p *Path) string {
		if p.Transport != client.QUIC.String() {
			return "-" // the system sends what is lost again, and does not tell
		}
		return fmt.Sprintf("%.1f %%", 100*p.Loss)
	})
	row("sent", func(p *Path) string { return terminal.Bytes(p.Sent) })
	row("received", func(p *Path) string { return terminal.Bytes(p.Received) })
	row("moves", func(p *Path) string { return strconv.Itoa(p.Moved) })
	row("last contact", func(p *Path) string { return ago(now, p.LastContact) })
	t.Flush()
	for _, f := range r.Forwards {
		fmt.Fprintf(&b, "  %v\n", f)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ago writes how long before now a time was.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return terminal.Duration(now.Sub(t)) + " ago"
}

// roundTrip writes a round-trip time, 0 if it is unknown.
func roundTrip(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", ms)
}
