//go:build linux || darwin

package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// sessions returns the sessions of an account that a client may see, the latest to
// change its phase first. It leaves out holders that do not answer, or not well.
func (s *Sessions) sessions(ctx context.Context, uid uint32, open *wire.Open, query *wire.Query) []entry {
	entries, _ := s.ask(ctx, open, uid, s.holders.Sessions(uid), query)
	return visible(entries)
}

func visible(entries []entry) []entry {
	return slices.DeleteFunc(entries, func(e entry) bool { return !e.state.Visible })
}

// minIDPrefix is the least number of hexadecimal digits of an id that names a session.
const minIDPrefix = 4

// Which sessions find returns without a name.
func anyTerminal(e *entry) bool { return e.state.PTY && e.state.Phase != wire.PhaseExited }
func detached(e *entry) bool {
	return e.state.PTY && (e.state.Phase == wire.PhaseDetached || e.state.Phase == wire.PhaseLost)
}

// find returns the session with the given name or start of an id. Without a name it
// returns, of those that are wanted, the one that was the latest to change its phase.
func (s *Sessions) find(
	ctx context.Context, uid uint32, open *wire.Open, name string, wanted func(*entry) bool,
) (*entry, error) {
	var ids []wire.SessionID
	if id, err := wire.ParseSessionID(name); err == nil { // a whole id: ask its holder only
		ids = append(ids, id)
	} else {
		ids = s.holders.Sessions(uid)
	}
	entries, silent := s.ask(ctx, open, uid, ids, &wire.Query{})
	if i := slices.IndexFunc(entries, isClaimed); i >= 0 {
		return &entries[i], nil
	}
	e, err := pick(visible(entries), name, wanted)
	if err != nil && silent > 0 {
		err.Text += fmt.Sprintf(" (sessions that do not answer: %d)", silent)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// isClaimed reports whether a session is that of a client that asks for it again.
func isClaimed(e entry) bool { return e.state.Claimed }

// pick prefers the sessions of the client's own scope: a restricted key must not put a
// session in the place of another key's.
func pick(entries []entry, name string, wanted func(*entry) bool) (*entry, *wire.Error) {
	var own []entry
	for _, e := range entries {
		if e.state.Own {
			own = append(own, e)
		}
	}
	e, err := pickAmong(own, name, wanted)
	if err != nil && err.Code == wire.CodeNoSession && len(own) < len(entries) {
		return pickAmong(entries, name, wanted)
	}
	return e, err
}

func pickAmong(entries []entry, name string, wanted func(*entry) bool) (*entry, *wire.Error) {
	if name == "" {
		for i, e := range entries {
			if wanted(&e) {
				return &entries[i], nil
			}
		}
		if len(entries) == 0 {
			return nil, &wire.Error{Code: wire.CodeNoSession, Text: "there is no session: qt connect opens one"}
		}
		return nil, errorf(wire.CodeNoSession,
			"no session is detached: qt attach HOST %s takes over the latest", entries[0].state.Name)
	}
	e, several := only(entries, func(e *entry) bool { return e.state.Name == name })
	if several {
		return nil, errorf(wire.CodeFailed,
			"more than one session has the name %s: give an id, qt ls lists them", name)
	}
	if e != nil {
		return e, nil
	}
	e, several = only(entries, func(e *entry) bool {
		return len(name) >= minIDPrefix && strings.HasPrefix(e.id.String(), name)
	})
	if several {
		return nil, errorf(wire.CodeFailed,
			"more than one session has an id that begins with %s: give more digits", name)
	}
	if e == nil {
		return nil, errorf(wire.CodeNoSession, "there is no session %q: qt ls lists the sessions", name)
	}
	return e, nil
}

// only returns the entry that matches, or nil, and reports whether others match too.
func only(entries []entry, match func(*entry) bool) (found *entry, several bool) {
	for i := range entries {
		if !match(&entries[i]) {
			continue
		}
		if found != nil {
			return nil, true
		}
		found = &entries[i]
	}
	return found, false
}

// list returns as many descriptions of sessions as fit into a message, and the number of the others.
func list(entries []entry) *wire.Listing {
	const overhead = 64 // bytes of a Listing besides the sessions
	listing, size := new(wire.Listing), overhead
	for i, e := range entries {
		if size += len(e.state.Info); size > wire.MaxMessage || len(e.state.Info) == 0 {
			listing.More = len(entries) - i
			break
		}
		listing.Sessions = append(listing.Sessions, e.state.Info)
	}
	return listing
}
