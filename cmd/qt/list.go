package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/wire"
)

func listCommand() *cobra.Command {
	var opts options
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls [flags] [[user@]host]",
		Short: "List your sessions on a host, or on this machine",
		Args:  usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			host := "localhost"
			if len(args) > 0 {
				host = args[0]
			}
			return withClient(c.Context(), host, &opts, func(ctx context.Context, a *access) error {
				infos, more, err := a.client.List(ctx)
				if err != nil {
					return err
				}
				if more > 0 {
					defer say("%d older sessions are not listed", more)
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), infos)
				}
				return printTable(c.OutOrStdout(), infos, time.Now())
			})
		},
	}
	addTargetFlags(c, &opts)
	c.Flags().SetInterspersed(true)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// maxQuiet is for how long a client may be silent before that shows in a listing. The default
// of keepalive_idle is 25 s.
const maxQuiet = 40 * time.Second

// sessionJSON is a session as qt ls --json prints it.
type sessionJSON struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	State   string    `json:"state"`
	Since   time.Time `json:"since"`
	Created time.Time `json:"created"`
	Cols    uint16    `json:"cols"`
	Rows    uint16    `json:"rows"`
	Clients []string  `json:"clients"`
	Command string    `json:"command"`
	// Heard is when the server heard the client last, if it is attached.
	Heard  *time.Time `json:"heard,omitempty"`
	Status *uint8     `json:"exit_status,omitempty"`
}

// describe converts sessions.
func describe(infos []wire.Info) []sessionJSON {
	sessions := []sessionJSON{}
	for _, i := range infos {
		s := sessionJSON{
			ID:      i.ID.String(),
			Name:    i.Name,
			State:   phaseName(i.Phase),
			Since:   time.Unix(i.Since, 0),
			Created: time.Unix(i.Created, 0),
			Cols:    i.Cols,
			Rows:    i.Rows,
			Clients: append([]string{}, i.Clients...),
			Command: i.Command,
		}
		if i.Phase == wire.PhaseExited {
			s.Status = &i.Status
		}
		if i.Heard != 0 {
			heard := time.Unix(i.Heard, 0)
			s.Heard = &heard
		}
		sessions = append(sessions, s)
	}
	return sessions
}

func phaseName(p wire.Phase) string {
	switch p {
	case wire.PhaseAttached:
		return "attached"
	case wire.PhaseDetached:
		return "detached"
	case wire.PhaseExited:
		return "exited"
	}
	return "unknown"
}

func printJSON(w io.Writer, infos []wire.Info) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(describe(infos))
}

func printTable(w io.Writer, infos []wire.Info, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tNAME\tSTATE\tSINCE\tSIZE\tCLIENTS\tCOMMAND")
	for _, s := range describe(infos) {
		state := s.State
		if s.Status != nil {
			state = fmt.Sprintf("%s %d", state, *s.Status)
		}
		if s.Heard != nil && now.Sub(*s.Heard) > maxQuiet {
			state += ", silent for " + duration(now.Sub(*s.Heard))
		}
		size := "-"
		if s.Cols > 0 {
			size = fmt.Sprintf("%dx%d", s.Cols, s.Rows)
		}
		clients := "-"
		if len(s.Clients) > 0 {
			clients = s.Clients[0]
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.ID[:8], s.Name, state, duration(now.Sub(s.Since)), size, clients, s.Command)
	}
	return t.Flush()
}

// duration writes a duration in its largest unit.
func duration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
