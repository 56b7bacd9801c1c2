//go:build linux || darwin

package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A sessionKey identifies a session on this machine.
type sessionKey struct {
	uid uint32
	id  wire.SessionID
}

// An entry is a session whose holder has answered.
type entry struct {
	id    wire.SessionID
	state wire.State
}

// keys returns the sessions of an account.
func (s *Server) keys(uid uint32) []sessionKey {
	var keys []sessionKey
	for _, id := range s.holders.Sessions(uid) {
		keys = append(keys, sessionKey{uid, id})
	}
	return keys
}

// sessions returns the sessions of an account that a client may see, the latest to
// change its phase first. It leaves out holders that do not answer.
func (s *Server) sessions(ctx context.Context, uid uint32, open *wire.Open) []entry {
	return visible(s.ask(ctx, open, s.keys(uid)))
}

func visible(entries []entry) []entry {
	return slices.DeleteFunc(entries, func(e entry) bool { return !e.state.Visible })
}

// maxAsks bounds how many holders are asked at once on behalf of one request.
const maxAsks = 64

// ask asks holders for the state of their sessions, until all have answered or ctx
// ends. It returns the answers, the session that was the latest to change its phase
// first.
func (s *Server) ask(ctx context.Context, open *wire.Open, keys []sessionKey) []entry {
	query, err := wire.New(&wire.Query{})
	if err != nil {
		panic(err) // a Query is empty
	}
	var mu sync.Mutex
	var entries []entry
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxAsks)
	for _, k := range keys {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			e := entry{id: k.id}
			answer, err := s.holders.Ask(ctx, k.uid, k.id, open, query)
			if err == nil {
				err = answer.Decode(&e.state)
			}
			if err != nil {
				s.log.Debug("holder does not answer", "id", shortID(k.id), "uid", k.uid, "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			entries = append(entries, e)
		})
	}
	wg.Wait()
	slices.SortFunc(entries, func(a, b entry) int {
		if a.state.Since != b.state.Since {
			return int(max(-1, min(1, b.state.Since-a.state.Since)))
		}
		return strings.Compare(a.id.String(), b.id.String())
	})
	return entries
}

// minIDPrefix is the least number of hexadecimal digits of an id that names a
// session.
const minIDPrefix = 4

// find returns the session with the given name or start of an id. Without a name it
// returns the detached session that was the latest to change its phase.
func (s *Server) find(ctx context.Context, uid uint32, open *wire.Open, name string) (*entry, error) {
	keys := s.keys(uid)
	if id, err := wire.ParseSessionID(name); err == nil { // a whole id: ask its holder only
		keys = slices.DeleteFunc(keys, func(k sessionKey) bool { return k.id != id })
	}
	return pick(visible(s.ask(ctx, open, keys)), name)
}

func pick(entries []entry, name string) (*entry, error) {
	if name == "" {
		for i, e := range entries {
			if e.state.PTY && e.state.Phase == wire.PhaseDetached {
				return &entries[i], nil
			}
		}
		if len(entries) == 0 {
			return nil, &wire.Error{Code: wire.CodeNoSession, Text: "there is no session: qt connect opens one"}
		}
		return nil, &wire.Error{Code: wire.CodeNoSession, Text: fmt.Sprintf("no session is detached: name one to take it over, the latest is %s", entries[0].state.Name)}
	}
	for i, e := range entries {
		if e.state.Name == name {
			return &entries[i], nil
		}
	}
	var found *entry
	for i, e := range entries {
		if len(name) >= minIDPrefix && strings.HasPrefix(e.id.String(), name) {
			if found != nil {
				return nil, &wire.Error{Code: wire.CodeFailed, Text: fmt.Sprintf("more than one session has an id that begins with %s: give more digits", name)}
			}
			found = &entries[i]
		}
	}
	if found == nil {
		return nil, &wire.Error{Code: wire.CodeNoSession, Text: fmt.Sprintf("there is no session %q: qt ls lists the sessions", name)}
	}
	return found, nil
}

// list returns as many descriptions of sessions as fit into a message, and the number
// of the others.
func list(entries []entry) *wire.Listing {
	const overhead = 64 // bytes of a Listing besides the sessions
	listing, size := new(wire.Listing), overhead
	for i, e := range entries {
		if size += len(e.state.Info); size > wire.MaxMessage {
			listing.More = len(entries) - i
			break
		}
		listing.Sessions = append(listing.Sessions, e.state.Info)
	}
	return listing
}

// shortID returns what the log tells of a session's id.
func shortID(id wire.SessionID) string { return id.String()[:8] }
