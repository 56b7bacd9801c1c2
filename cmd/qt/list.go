package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/drive"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func listCommand() *cobra.Command {
	var opts options
	var asJSON bool
	var wanted []string
	c := &cobra.Command{
		Use:   "ls [flags] [[user@]host]",
		Short: "List your sessions on a host, or on this machine",
		Long: `List your sessions on a host, or on this machine: also which program runs in the foreground of each, and
whether that waits, and since when: for a command at the prompt, or for other input. Neither is known of a command
without a terminal. Only a server on Linux knows what a program waits for.

With --filter FIELD=PATTERN, list those of which a field matches: name, state, runs, waits or command, as in
--json. In the pattern, * stands for any characters and ? for one: "name=build-*". Of several filters, all must match.

With --json, print an array with an object for each session. Times are as in
RFC 3339.

  id, name, command
  state, since         attached (by a client that can type), detached, or exited:
                       the program has ended, and no client knows
  created              time when it was started
  cols, rows           size of its terminal, or 0
  pty                  whether it has one; a command without one has one client for ever, and
                       is hung up when that has been detached for an hour
  clients              names of the clients that can type: account@address
  members              an array with an object for each client: client (its name),
                       role (writer, share, watch or peek), since
  more_members         how many clients are not in it, if there are very many
  heard                time when the server heard such a client last
  exit_status          of the program that has ended
  runs                 name of the first process in the foreground of its terminal, as that gives
                       it itself; left out, like the next two, if it is not known
  waits                what it waits for: prompt (it is the shell, which waits for a command),
                       input, or nothing
  waits_since          time since when; of nothing, time when that process was started`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			filters, err := parseFilters(wanted)
			if err != nil {
				return err
			}
			host, _ := splitHost(args)
			return reach.With(c.Context(), host, &opts.Options, func(ctx context.Context, a *reach.Access) error {
				infos, more, err := a.Client.List(ctx)
				if err != nil {
					return err
				}
				if more > 0 {
					defer say("%d older sessions are not listed", more)
				}
				sessions := filters.of(describe(infos))
				if asJSON {
					return printIndented(c.OutOrStdout(), sessions)
				}
				return printTable(c.OutOrStdout(), sessions, time.Now())
			})
		},
	}
	addTargetFlags(c, &opts)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringArrayVar(&wanted, "filter", nil, "list sessions of which a field matches: `FIELD=PATTERN`; may be repeated")
	complete(c, &opts, hostNames)
	return c
}

// maxQuiet is for how long a client may be silent before that shows in a listing. The default
// of keepalive_idle is 25 s.
const maxQuiet = 40 * time.Second

// sessionJSON is a session as qt ls --json prints it. The help of qt ls describes it.
type sessionJSON struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	State   string    `json:"state"`
	Since   time.Time `json:"since"`
	Created time.Time `json:"created"`
	Cols    uint16    `json:"cols"`
	Rows    uint16    `json:"rows"`
	PTY     bool      `json:"pty"`
	Clients []string  `json:"clients"`
	Members []member  `json:"members"`
	More    int       `json:"more_members,omitempty"`
	Command string    `json:"command"`
	// Heard is when the server heard the client last, if it is attached.
	Heard  *time.Time `json:"heard,omitempty"`
	Status *uint8     `json:"exit_status,omitempty"`
	drive.Activity
}

// A member is a client of a session.
type member struct {
	Client string    `json:"client"`
	Role   string    `json:"role"`
	Since  time.Time `json:"since"`
}

// describe converts sessions.
func describe(infos []wire.Info) []sessionJSON {
	sessions := []sessionJSON{}
	for _, i := range infos {
		s := sessionJSON{
			ID:      i.ID.String(),
			Name:    i.Name,
			State:   i.Phase.String(),
			Since:   time.Unix(i.Since, 0),
			Created: time.Unix(i.Created, 0),
			Cols:    i.Cols,
			Rows:    i.Rows,
			PTY:     i.PTY,
			Clients: []string{},
			Members: []member{},
			More:    i.More,
			Command: i.Command,

			Activity: drive.ActivityOf(i.Activity),
		}
		for _, m := range i.Members {
			if !m.Role.ReadOnly() {
				s.Clients = append(s.Clients, m.Client)
			}
			s.Members = append(s.Members, member{m.Client, roleName(m.Role), time.Unix(m.Since, 0)})
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

func roleName(r wire.Role) string {
	names := []string{wire.RoleWriter: "writer", wire.RoleShare: "share", wire.RoleWatch: "watch", wire.RolePeek: "peek"}
	if int(r) < len(names) {
		return names[r]
	}
	return "unknown"
}

func printTable(w io.Writer, sessions []sessionJSON, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tNAME\tSTATE\tSINCE\tSIZE\tCLIENTS\tRUNS\tWAITS\tCOMMAND")
	for _, s := range sessions {
		size := "-"
		if s.Cols > 0 {
			size = fmt.Sprintf("%dx%d", s.Cols, s.Rows)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			s.ID[:8], s.Name, s.state(now), terminal.Duration(now.Sub(s.Since)), size, s.who(now), cmp.Or(s.Runs, "-"), s.waits(now),
			s.Command)
	}
	return t.Flush()
}

// state says in words what state a session is in. A command without a terminal has one client, and no other can
// attach to it.
func (s *sessionJSON) state(now time.Time) string {
	silent := ""
	if s.Heard != nil && now.Sub(*s.Heard) > maxQuiet {
		silent = "silent for " + terminal.Duration(now.Sub(*s.Heard))
	}
	switch {
	case s.Status != nil:
		return fmt.Sprintf("%s %d", s.State, *s.Status)
	case s.PTY && silent != "":
		return s.State + ", " + silent
	case !s.PTY && silent != "":
		return "client " + silent
	case !s.PTY && s.State == wire.PhaseDetached.String():
		return "client gone"
	}
	return s.State
}

// who lists the clients of a session, and since when they are there.
func (s *sessionJSON) who(now time.Time) string {
	var who []string
	for _, m := range s.Members {
		text := m.Client + " " + terminal.Duration(now.Sub(m.Since))
		if m.Role != roleName(wire.RoleWriter) {
			text += " (" + m.Role + ")"
		}
		who = append(who, text)
	}
	if len(who) == 0 {
		return "-"
	}
	if s.More > 0 {
		who = append(who, fmt.Sprintf("%d more", s.More))
	}
	return strings.Join(who, ", ")
}

// waits says what a session waits for, and since when.
func (s *sessionJSON) waits(now time.Time) string {
	switch {
	case s.Waits == "":
		return "-"
	case s.WaitsSince == nil:
		return s.Waits
	}
	return s.Waits + " " + terminal.Duration(now.Sub(*s.WaitsSince))
}
