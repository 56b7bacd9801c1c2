package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

func TestFollower(t *testing.T) {
	var got []string
	f := newFollower(func(e eventJSON) error {
		text := e.Event
		if e.Session != nil {
			text += fmt.Sprintf(" %s %dx%d", e.Session.Name, e.Session.Cols, e.Session.Rows)
		}
		if e.Client != "" {
			text += " " + e.Client + " " + e.Role
		}
		got = append(got, text)
		return nil
	})
	now := time.Unix(1_700_000_000, 0)
	want := func(why string, events ...string) {
		t.Helper()
		if !slices.Equal(got, events) {
			t.Errorf("%s: %q, want %q", why, got, events)
		}
		got = nil
	}
	session := func(n byte, phase wire.Phase, cols uint16, members ...wire.Member) wire.Info {
		return wire.Info{ID: wire.SessionID{n}, Name: fmt.Sprint("s", n), Phase: phase, Cols: cols, Rows: 24, Members: members}
	}
	ann := wire.Member{Client: "ann", Since: 1}
	bob := wire.Member{Client: "bob", Role: wire.RoleWatch, Since: 2}
	list := func(more int, infos ...wire.Info) {
		t.Helper()
		if err := f.listing(now, infos, more); err != nil {
			t.Error(err)
		}
	}

	list(0, session(1, wire.PhaseAttached, 80, ann))
	want("the first listing", "exists s1 80x24", "attached s1 80x24 ann writer")
	list(0, session(1, wire.PhaseAttached, 80, ann))
	want("the same again")
	list(0, session(1, wire.PhaseAttached, 80, ann, bob, bob))
	want("two that watch", "attached s1 80x24 bob watch", "attached s1 80x24 bob watch")
	list(0, session(1, wire.PhaseAttached, 90, bob), session(2, wire.PhaseDetached, 80))
	want("changes", "detached s1 90x24 ann writer", "detached s1 90x24 bob watch", "resized s1 90x24", "started s2 80x24")
	for range 2 {
		if err := f.unreachable(now); err != nil {
			t.Error(err)
		}
	}
	want("an outage", "lost")
	list(0, session(1, wire.PhaseExited, 90), session(2, wire.PhaseDetached, 80))
	want("after it", "back", "detached s1 90x24 bob watch", "exited s1 90x24")
	list(3, session(2, wire.PhaseDetached, 80))
	want("a listing that leaves sessions out")
	list(0, session(2, wire.PhaseAttached, 80, ann))
	want("the end of a session", "attached s2 80x24 ann writer", "ended s1 90x24")
	list(0)
	want("the end of the other one", "detached s2 80x24 ann writer", "ended s2 80x24")
	list(0, session(2, wire.PhaseDetached, 80), session(3, wire.PhaseExited, 80))
	want("a session whose holder did not answer", "exists s2 80x24", "started s3 80x24", "exited s3 80x24")
}

func TestEventText(t *testing.T) {
	at := time.Date(2026, 11, 22, 15, 4, 5, 0, time.Local)
	status := uint8(3)
	s := &sessionJSON{ID: "0123456789abcdef", Name: "work"}
	for want, e := range map[string]eventJSON{
		"15:04:05  lost":                                       {Time: at, Event: "lost"},
		"15:04:05  work (01234567)  started":                   {Time: at, Event: "started", Session: s},
		"15:04:05  work (01234567)  attached  ann@host, share": {Time: at, Event: "attached", Client: "ann@host", Role: "share", Session: s},
		"15:04:05  work (01234567)  exited  3":                 {Time: at, Event: "exited", Session: &sessionJSON{ID: s.ID, Name: s.Name, Status: &status}},
	} {
		if got := e.text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
