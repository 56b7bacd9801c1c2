package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// errChoseLate means that the user has taken longer than client.KeptTime to choose from a listing: the request needs a login of its own.
var errChoseLate = errors.New("the connection does not wait for so long")

// withSession is withClient for a session, which the user chooses if *session is empty.
func withSession(ctx context.Context, host string, session *string, opts *options, f reach.Call) error {
	try := func() error {
		return reach.With(ctx, host, &opts.Options, func(ctx context.Context, a *reach.Access) (err error) {
			if *session == "" {
				if *session, err = chooseSession(ctx, a, host, opts.role); err != nil {
					return err
				}
			}
			return f(ctx, a)
		})
	}
	err := try()
	if errors.Is(err, errChoseLate) {
		err = try()
	}
	return err
}

// chooseSession returns the id of the session that a client without a name is for: the only one that it can have
// without taking it from another client, or else one that the user picks. With errChoseLate it is the user's choice.
func chooseSession(ctx context.Context, a *reach.Access, host string, role wire.Role) (id string, err error) {
	listed := time.Now()
	infos, _, err := a.Client.List(ctx)
	if err != nil {
		return "", err
	}
	infos = slices.DeleteFunc(infos, func(i wire.Info) bool {
		return !i.PTY || i.Phase == wire.PhaseExited || i.Phase == wire.PhaseLost && role != wire.RoleWriter
	})
	slices.SortStableFunc(infos, func(a, b wire.Info) int { return attachedLast(a) - attachedLast(b) })
	switch {
	case len(infos) == 0:
		return "", errNoneRuns
	case len(infos) == 1 && (role != wire.RoleWriter || infos[0].Phase != wire.PhaseAttached) &&
		(role == wire.RolePeek || onTerminal()):
		return infos[0].ID.String(), nil
	}
	picked, err := pick(host, infos, role)
	if err != nil {
		return "", err
	}
	if time.Since(listed) > client.KeptTime {
		err = errChoseLate
	}
	return picked.ID.String(), err
}

// onTerminal reports whether the user can answer, and attach to a session.
func onTerminal() bool { return term.IsTerminal(int(os.Stdin.Fd())) }

// attachedLast orders sessions that have a client behind those that have none.
func attachedLast(i wire.Info) int {
	if i.Phase == wire.PhaseAttached {
		return 1
	}
	return 0
}

// pick prints a table of sessions and asks for one of them.
func pick(host string, infos []wire.Info, role wire.Role) (*wire.Info, error) {
	if err := printTable(os.Stderr, describe(infos), time.Now()); err != nil {
		return nil, err
	}
	none := reach.WithHint(errNoSession, nameSession, verb(role), host)
	if !onTerminal() {
		return nil, none
	}
	var picked *wire.Info
	err := reach.Ask(fmt.Sprintf(sessionQuestion, infos[0].Name), func(answer string) bool {
		if picked = named(infos, answer); picked == nil && !reach.Declines(answer) {
			say(noSuchChoice, answer)
		}
		return picked != nil
	})
	if err != nil && !errors.As(err, new(*reach.SignalError)) {
		err = none
	}
	return picked, err
}

// verb returns the command by which a client has a role.
func verb(role wire.Role) string {
	switch role {
	case wire.RoleShare:
		return "attach --share"
	case wire.RoleWatch, wire.RolePeek:
		return role.String()
	}
	return "attach"
}

// named returns the session that an answer means: the first for an empty one, or that of this name, or the only one
// whose name or id begins so. A no means none, unless it is a whole name.
func named(infos []wire.Info, answer string) *wire.Info {
	if answer == "" {
		return &infos[0]
	}
	var begins []*wire.Info
	for i := range infos {
		switch info := &infos[i]; {
		case info.Name == answer:
			return info
		case reach.Declines(answer):
		case strings.HasPrefix(info.Name, answer), strings.HasPrefix(info.ID.String(), answer):
			begins = append(begins, info)
		}
	}
	if len(begins) != 1 {
		return nil
	}
	return begins[0]
}
