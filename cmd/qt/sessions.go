package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func listCommand() *cobra.Command {
	var opts options
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls [flags] [[user@]host]",
		Short: "List the sessions on a host, or on this machine",
		Args:  usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			host := "localhost"
			if len(args) > 0 {
				host = args[0]
			}
			return with(c.Context(), host, &opts, func(client *quicterm.Client, _ *configs.Client) error {
				infos, more, err := client.List(c.Context())
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

// listed is a session as JSON shows it.
type listed struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	State   string    `json:"state"`
	Since   time.Time `json:"since"`
	Created time.Time `json:"created"`
	Cols    uint16    `json:"cols"`
	Rows    uint16    `json:"rows"`
	Clients []string  `json:"clients"`
	Command string    `json:"command"`
	Status  *uint8    `json:"exit_status,omitempty"`
}

func list(infos []wire.Info) []listed {
	sessions := []listed{}
	for _, i := range infos {
		l := listed{
			ID:      i.ID.String(),
			Name:    printable(i.Name),
			State:   phase(i.Phase),
			Since:   time.Unix(i.Since, 0),
			Created: time.Unix(i.Created, 0),
			Cols:    i.Cols,
			Rows:    i.Rows,
			Clients: []string{},
			Command: printable(i.Command),
		}
		for _, c := range i.Clients {
			l.Clients = append(l.Clients, printable(c))
		}
		if i.Phase == wire.PhaseExited {
			l.Status = &i.Status
		}
		sessions = append(sessions, l)
	}
	return sessions
}

func phase(p wire.Phase) string {
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
	return e.Encode(list(infos))
}

func printTable(w io.Writer, infos []wire.Info, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tNAME\tSTATE\tSINCE\tSIZE\tCLIENTS\tCOMMAND")
	for _, s := range list(infos) {
		state := s.State
		if s.Status != nil {
			state = fmt.Sprintf("%s %d", state, *s.Status)
		}
		size := "-"
		if s.Cols > 0 {
			size = fmt.Sprintf("%dx%d", s.Cols, s.Rows)
		}
		clients := "-"
		if len(s.Clients) > 0 {
			clients = s.Clients[0]
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.ID[:8], s.Name, state, ago(now.Sub(s.Since)), size, clients, s.Command)
	}
	return t.Flush()
}

// ago writes how long ago something was, in its largest unit.
func ago(d time.Duration) string {
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

// printable replaces what could control a terminal.
func printable(s string) string {
	runes := []rune(s)
	for i, r := range runes {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			runes[i] = '?'
		}
	}
	return string(runes)
}

func killCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "kill [flags] [user@]host session",
		Short: "End a session",
		Args:  usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return with(c.Context(), args[0], &opts, func(client *quicterm.Client, _ *configs.Client) error {
				return client.Kill(c.Context(), args[1])
			})
		},
	}
	addTargetFlags(c, &opts)
	return c
}
