//go:build linux || darwin

package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// findOrCreate returns the id of the session that a client asks for.
func (c *conn) findOrCreate(ctx context.Context, req *wire.Attach) (wire.SessionID, error) {
	s, uid := c.server, c.account.UID
	if req.Mode == wire.ModeAttach {
		e, err := s.find(ctx, uid, c.open(), req.Session)
		if err != nil {
			return wire.SessionID{}, err
		}
		return e.id, nil
	}
	if err := s.checkMemory(ctx); err != nil {
		return wire.SessionID{}, err
	}
	defer s.creating.lock(uid)()
	keys := s.keys(uid)
	all := s.ask(ctx, c.open(), keys)
	taken := func(name string) bool {
		return slices.ContainsFunc(all, func(e entry) bool { return e.state.Name == name })
	}
	name := req.Session
	switch {
	case name == "":
		for n := 1; name == "" || taken(name); n++ {
			name = strconv.Itoa(n)
		}
	case !wire.ValidName(name):
		return wire.SessionID{}, &wire.Error{Code: wire.CodeFailed, Text: fmt.Sprintf("%q cannot be a session's name: use up to 32 letters, digits, dots, dashes and underscores", name)}
	case taken(name):
		if e, err := pick(visible(slices.Clone(all)), name); err == nil && req.Mode == wire.ModeAttachOrCreate {
			return e.id, nil
		}
		return wire.SessionID{}, &wire.Error{Code: wire.CodeFailed, Text: fmt.Sprintf("there is a session %q already", name)}
	}
	count := len(keys) // including sessions whose holders do not answer
	for _, e := range all {
		if e.state.Name == "" { // it was killed, and is only kept to tell its client
			count--
		}
	}
	if limit := s.settings.MaxSessionsPerUser; count >= limit {
		return wire.SessionID{}, &wire.Error{Code: wire.CodeFailed, Text: fmt.Sprintf("%s has %d sessions already, and max_sessions_per_user is %d: end one with qt kill", c.account.Name, count, limit)}
	}
	launch, err := c.launch(req, name)
	if err != nil {
		return wire.SessionID{}, err
	}
	if err := s.holders.Start(ctx, c.account, launch); err != nil {
		return wire.SessionID{}, err
	}
	c.log.Info("session started", "session", name, "id", shortID(launch.ID), "account", c.account.Name)
	return launch.ID, nil
}
