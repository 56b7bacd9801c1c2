package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/drive"
	"github.com/quicterm/quicterm/quicterm/wire"
)

type listing struct {
	Sessions []info `json:"sessions"`
	More     int    `json:"more,omitempty" jsonschema:"how many older sessions are not listed"`
}

type info struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	State   string    `json:"state" jsonschema:"attached (by a client that can type), detached, exited or lost"`
	Since   time.Time `json:"since"`
	Created time.Time `json:"created"`
	Cols    uint16    `json:"cols" jsonschema:"of its terminal, or 0 if it has none"`
	Rows    uint16    `json:"rows"`
	Command string    `json:"command,omitempty"`
	Clients []string  `json:"clients,omitempty"`
	Status  *uint8    `json:"exit_status,omitempty"`
	drive.Activity
}

func (s *server) list(ctx context.Context, in host) (out listing, err error) {
	err = s.at(ctx, in, func(ctx context.Context, a *reach.Access) error {
		infos, more, err := a.Client.List(ctx)
		out = listing{Sessions: []info{}, More: more}
		for _, i := range infos {
			session := info{
				ID: i.ID.String(), Name: i.Name, State: i.Phase.String(), Command: i.Command,
				Since: time.Unix(i.Since, 0), Created: time.Unix(i.Created, 0), Cols: i.Cols, Rows: i.Rows,
				Activity: drive.ActivityOf(i.Activity),
			}
			for _, m := range i.Members {
				session.Clients = append(session.Clients, fmt.Sprintf("%s (%v)", m.Client, m.Role))
			}
			if i.Phase == wire.PhaseExited {
				session.Status = &i.Status
			}
			out.Sessions = append(out.Sessions, session)
		}
		return err
	})
	return out, err
}

type program struct {
	host
	Name    string            `json:"name,omitempty" jsonschema:"of the session; the server chooses one if it is left out"`
	Command string            `json:"command,omitempty" jsonschema:"for the login shell; a shell if it is left out"`
	Dir     string            `json:"cwd,omitempty" jsonschema:"where it starts, from the home directory on"`
	Env     map[string]string `json:"env,omitempty" jsonschema:"variables, which the server must accept"`
	Cols    uint16            `json:"cols,omitempty" jsonschema:"of the terminal; 80 if it is left out"`
	Rows    uint16            `json:"rows,omitempty" jsonschema:"24 if it is left out"`
}

type started struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func (s *server) start(ctx context.Context, in program) (out started, err error) {
	req := &wire.Attach{
		Session: in.Name, Command: in.Command, Dir: in.Dir, PTY: true, Required: uint8(min(len(in.Env), wire.MaxEnv)),
		Size: wire.Size{Cols: cmp.Or(in.Cols, 80), Rows: cmp.Or(in.Rows, 24)},
	}
	var own [][2]string
	for name, value := range in.Env {
		own = append(own, [2]string{name, value})
	}
	if len(own) > wire.MaxEnv {
		return out, fmt.Errorf("a session takes %d variables, and there are %d", wire.MaxEnv, len(own))
	}
	err = s.at(ctx, in.host, func(ctx context.Context, a *reach.Access) error {
		req.Env = a.Environment(own)
		session, err := a.Client.Attach(ctx, req, client.Streams{})
		if err != nil {
			return err
		}
		session.Leave()
		_, _ = session.Run(ctx) // which returns ErrLeft
		out = started{session.ID().String(), session.Name()}
		return nil
	})
	return out, err
}

type ended struct{}

func (s *server) kill(ctx context.Context, in session) (ended, error) {
	err := s.at(ctx, in.host, func(ctx context.Context, a *reach.Access) error {
		return a.Client.Kill(ctx, in.Session)[0]
	})
	if err == nil {
		s.forget(in) // what it shows is over, as it will hear soon
	}
	return ended{}, err
}

type part struct {
	session
	Since uint64 `json:"since,omitempty" jsonschema:"the offset to begin at: the next of an earlier result"`
	limit
}

// A limit bounds how much of an output a result has.
type limit struct {
	MaxBytes int `json:"max_bytes,omitempty" jsonschema:"how many bytes of output at most; 16384 if left out"`
}

const (
	usualBytes = 16 << 10
	mostBytes  = 1 << 20 // of a result: more fits no model
)

func (l limit) bytes() int { return min(max(cmp.Or(l.MaxBytes, usualBytes), utf8.UTFMax), mostBytes) }

// errEnough ends a Tail that has read what was asked for.
var errEnough = errors.New("enough")

func (s *server) tail(ctx context.Context, in part) (out drive.Chunk, err error) {
	out = drive.Chunk{From: in.Since, Next: in.Since}
	ctx, cancel := deadline{}.limit(ctx)
	defer cancel()
	err = s.at(ctx, in.host, func(ctx context.Context, a *reach.Access) error {
		return drive.Tail(ctx, a.Client, in.Session, in.Since, false, func(c drive.Chunk) error {
			if out.Text == "" {
				out.From, out.Lost = c.From, out.Lost+c.Lost
			} else if c.Lost > 0 {
				return errEnough
			}
			n := min(len(c.Text), in.bytes()-len(out.Text))
			for cut := 1; n < len(c.Text) && n > 0 && cut < utf8.UTFMax && !utf8.RuneStart(c.Text[n]); cut++ {
				n--
			}
			out.Text, out.Next = out.Text+c.Text[:n], c.From+uint64(n)
			if n < len(c.Text) {
				return errEnough
			}
			return nil
		})
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}
