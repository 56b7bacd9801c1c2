//go:build linux || darwin

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// States are counted each time that one of the machines is seen in one. An hour must reach hourStates and all kinds of
// faults, a minute must reach minuteStates.
var (
	minuteStates = []string{
		"loss", "dead network", "UDP blocked", "interface down", "NAT rebinding", "new address",
		"starved processor", "relay lies", "takeover", "client stopped", "client killed", "daemon killed",
		"link live", "link moving", "link suspect", "link offline",
		"path quic live", "session attached",
		"frames by stream", "frames by datagrams", "frames by TCP",
		"end: exit", "end: displaced", "client: duplicates", "lie: cut",
	}
	hourStates = append([]string{
		"bad network from the beginning", "bit changed in the relay", "frame changed in a ring",
		"lie: repeated", "lie: from an old carrier",
		"path quic moving", "path quic suspect", "path quic offline", "path quic standby",
		"path tcp live", "path tcp suspect", "path tcp offline", "no path",
		"session detached", "session exited", "session without clients", "session with several clients",
		"gap told", "gap with snapshot", "watcher", "replay",
		"end: gone", "end: left", "end: withdrawn", "given up: refused",
		"access revoked for all", "page", "record not kept", "record kept again", "holder killed: record left", "recorder's disk full",
		"output dropped for memory",
		"client: reordered", "client: corrupted", "client: resends", "holder: gaps",
	}, minuteStates...)
)

// reached counts that a machine was seen in a state.
func (w *world) reached(state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states[state]++
}

// look looks at all clients and sessions, as qt status and qt ls do.
func (w *world) look() {
	for _, a := range w.everyone() {
		s := a.current()
		if s == nil || a.process.halted() != nil {
			continue
		}
		status := s.Status()
		if len(status.Paths) == 0 {
			w.reached("no path")
		}
		for _, p := range status.Paths {
			w.reached(fmt.Sprintf("path %v %s", p.Transport, p.State))
		}
	}
	for _, id := range w.host.holders.Sessions(0) {
		w.lookAt(id)
	}
}

// phases are how a session may be when somebody looks.
var phases = map[wire.Phase]string{
	wire.PhaseAttached: "session attached", wire.PhaseDetached: "session detached", wire.PhaseExited: "session exited",
}

// lookAt looks at a session, by asking its holder.
func (w *world) lookAt(id wire.SessionID) {
	report, state := new(wire.Report), new(wire.State)
	if err := w.ask(id, &wire.Inspect{}, report); err != nil {
		return // it ends
	}
	if err := w.ask(id, &wire.Query{}, state); err != nil {
		return
	}
	w.reached(phases[report.Phase])
	if report.Gaps > 0 {
		w.reached("holder: gaps")
	}
	if report.Ring > report.Capacity {
		w.failf("the ring of session %s has %d bytes, and may have %d", report.Name, report.Ring, report.Capacity)
	}
	if len(state.Info) == 0 {
		return
	}
	info, err := wire.DecodeInfo(state.Info)
	if err != nil {
		w.failf("session %s describes itself by what cannot be read: %v", report.Name, err)
	}
	switch n := len(info.Members); {
	case n == 0:
		w.reached("session without clients")
	case n > 1:
		w.reached("session with several clients")
	}
}

// ask asks the holder of a session.
func (w *world) ask(id wire.SessionID, request, into wire.Body) error {
	m, err := wire.New(request)
	if err != nil {
		return err
	}
	answer, err := w.host.holders.Ask(context.Background(), 0, id, &wire.Open{}, m)
	if err != nil {
		return err
	}
	return answer.Decode(into)
}

// countEnd counts how a client has ended, and what it has seen.
func (w *world) countEnd(s *client.Session, err error) {
	var displaced *client.DisplacedError
	var withdrawn *client.WithdrawnError
	switch {
	case err == nil:
		w.reached("end: exit")
	case errors.As(err, &displaced):
		w.reached("end: displaced")
	case errors.As(err, &withdrawn):
		w.reached("end: withdrawn")
	case errors.Is(err, client.ErrGone):
		w.reached("end: gone")
	default:
		w.reached("end: left")
	}
	c := s.Status().Counters
	for what, n := range map[string]uint64{
		"duplicates": c.Duplicates, "reordered": c.Reordered, "corrupted": c.Corrupted, "resends": c.Resends,
	} {
		if n > 0 {
			w.reached("client: " + what)
		}
	}
}

// demanded returns the faults and states that worlds which are played for some time must reach.
func demanded(played time.Duration) (names []string) {
	switch {
	case played >= time.Hour:
		names = hourStates
		for _, k := range slices.Concat(kinds, resourceKinds, serverKinds, storageKinds) {
			names = append(names, k.name)
		}
	case played >= time.Minute:
		names = minuteStates
	}
	return names
}

// missing returns which of some faults and states were not reached.
func (s *totals) missing(names []string) (missing []string) {
	for _, name := range names {
		if s.counts[name] == 0 && s.states[name] == 0 && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// Worlds that have reached too little are a failure.
func TestDemand(t *testing.T) {
	s := totals{counts: map[string]int{"loss": 1}, states: map[string]int{"link live": 2, "link moving": 0}}
	want := []string{"link moving", "link idle"}
	if got := s.missing([]string{"loss", "link live", "link moving", "link idle"}); !slices.Equal(got, want) {
		t.Errorf("missing are %q, want %q", got, want)
	}
}
