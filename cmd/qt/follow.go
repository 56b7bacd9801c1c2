package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An eventJSON is a line of qt ls --watch --json. The help of qt ls describes it.
type eventJSON struct {
	Time    time.Time    `json:"time"`
	Event   string       `json:"event"`
	Client  string       `json:"client,omitempty"`
	Role    string       `json:"role,omitempty"`
	Session *sessionJSON `json:"session,omitempty"`
}

// text returns an event as a line for people.
func (e eventJSON) text() string {
	line := e.Time.Local().Format(time.TimeOnly) + "  "
	if e.Session != nil {
		line += fmt.Sprintf("%s (%s)  ", e.Session.Name, e.Session.ID[:8])
	}
	line += e.Event
	switch {
	case e.Client != "":
		line += fmt.Sprintf("  %s, %s", e.Client, e.Role)
	case e.Session != nil && e.Session.Status != nil:
		line += fmt.Sprintf("  %d", *e.Session.Status)
	}
	return line
}

// A follower turns listings into events.
type follower struct {
	emit   func(eventJSON) error
	began  bool // there was a listing
	lost   bool // the server is not reached
	known  map[wire.SessionID]wire.Info
	listed map[wire.SessionID]bool // at any time
}

func newFollower(emit func(eventJSON) error) *follower {
	return &follower{emit: emit, known: make(map[wire.SessionID]wire.Info), listed: make(map[wire.SessionID]bool)}
}

// listing compares a listing with the one before. More is how many sessions it leaves out.
func (f *follower) listing(now time.Time, infos []wire.Info, more int) error {
	var errs []error
	event := func(name string, info wire.Info, m wire.Member) {
		described := describe([]wire.Info{info})[0]
		e := eventJSON{Time: now.UTC(), Event: name, Client: m.Client, Session: &described}
		if m.Client != "" {
			e.Role = roleName(m.Role)
		}
		errs = append(errs, f.emit(e))
	}
	if f.lost {
		f.lost = false
		errs = append(errs, f.emit(eventJSON{Time: now.UTC(), Event: "back"}))
	}
	present := make(map[wire.SessionID]bool)
	for _, info := range infos {
		before, known := f.known[info.ID]
		switch {
		case !known && f.began && !f.listed[info.ID]:
			event("started", info, wire.Member{})
		case !known:
			event("exists", info, wire.Member{})
		}
		compareMembers(before.Members, info.Members, func(name string, m wire.Member) { event(name, info, m) })
		if known && (before.Cols != info.Cols || before.Rows != info.Rows) {
			event("resized", info, wire.Member{})
		}
		if info.Phase == wire.PhaseExited && before.Phase != wire.PhaseExited {
			event("exited", info, wire.Member{})
		}
		f.known[info.ID], f.listed[info.ID], present[info.ID] = info, true, true
	}
	for id, info := range f.known {
		if present[id] || more > 0 { // it may be one of those that are left out
			continue
		}
		delete(f.known, id)
		compareMembers(info.Members, nil, func(name string, m wire.Member) { event(name, info, m) })
		event("ended", info, wire.Member{})
	}
	f.began = true
	return errors.Join(errs...)
}

// compareMembers calls event for clients that have left and that have come.
func compareMembers(before, after []wire.Member, event func(name string, m wire.Member)) {
	count := make(map[wire.Member]int)
	for _, m := range before {
		count[m]++
	}
	for _, m := range after {
		count[m]--
	}
	for _, m := range before {
		if count[m] > 0 {
			count[m]--
			event("detached", m)
		}
	}
	for _, m := range after {
		if count[m] < 0 {
			count[m]++
			event("attached", m)
		}
	}
}

// unreachable records that the server is not reached.
func (f *follower) unreachable(now time.Time) error {
	if f.lost {
		return nil
	}
	f.lost = true
	return f.emit(eventJSON{Time: now.UTC(), Event: "lost"})
}

// follow prints events of the sessions on a host until the user ends it, or the host does not let
// us in.
func follow(ctx context.Context, w io.Writer, host string, opts *options, asJSON bool) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	f := newFollower(func(e eventJSON) error {
		if asJSON {
			return out.Encode(e)
		}
		_, err := fmt.Fprintln(w, e.text())
		return err
	})
	ctx, stopSignals := reach.UntilSignal(ctx, syscall.SIGINT)
	defer stopSignals()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	pause := firstPause
	for {
		err := reach.With(ctx, host, &opts.Options, func(ctx context.Context, a *reach.Access) error {
			return a.Client.Follow(ctx, func(infos []wire.Info, more int) {
				pause = firstPause
				if err := f.listing(time.Now(), infos, more); err != nil {
					stop(err)
				}
			})
		})
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			continue
		}
		if signaled := new(reach.SignalError); errors.As(err, &signaled) && signaled.Signal == syscall.SIGINT {
			return nil // the login may see the signal before this function's context ends
		}
		if ctx.Err() != nil || !f.began || !contactLost(err) {
			return err
		}
		if err := f.unreachable(time.Now()); err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, longestPause)
	}
}

// contactLost reports whether an error says that a server is not reached now, and may be later.
func contactLost(err error) bool {
	var brokenOff *client.BrokenOffError
	var unreachable *client.UnreachableError
	var login *bootstrap.LoginError
	var unresolved *net.DNSError
	return errors.As(err, &brokenOff) || errors.As(err, &unreachable) || errors.Is(err, client.ErrBusy) ||
		errors.As(err, &unresolved) || errors.As(err, &login) && login.Unreachable()
}
