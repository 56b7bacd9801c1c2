package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func TestWhyEnded(t *testing.T) {
	now := time.Date(2026, 11, 22, 16, 0, 0, 0, time.FixedZone("", 3600))
	ended := wire.ExitStatus{Status: 129, Reason: "ended by detached_ttl (1h)", At: time.Date(2026, 11, 22, 13, 3, 5, 0, time.UTC)}
	old := ended
	old.At = old.At.AddDate(0, 0, -1)
	for want, exit := range map[string]wire.ExitStatus{
		"": {Status: 129},
		"session 1 on host was ended by detached_ttl (1h), at 14:03:05":            ended,
		"session 1 on host was ended by detached_ttl (1h), at 2026-11-21 14:03:05": old,
	} {
		if got := whyEnded("1", "host", exit, now); got != want {
			t.Errorf("%+v: %q, want %q", exit, got, want)
		}
	}
	if got, want := whyEnded("1", ".", ended, now), "session 1 on this machine was ended by detached_ttl (1h), at 14:03:05"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The command that resumes a session has the options that reach its server.
func TestResumeCommand(t *testing.T) {
	for want, opts := range map[string]options{
		"qt attach anna@host work": {verbose: true, redundant: true},
		"qt attach -p 5000 -l bob -i a -i b -F config anna@host work": {
			port: 5000, user: "bob", identities: []string{"a", "b"}, config: "config",
		},
	} {
		if got := resumeCommand("anna@host", &opts, "work"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestExplainEnd(t *testing.T) {
	other := errors.New("other")
	for want, err := range map[string]error{
		"the session was taken over by bob@192.0.2.7; take it back with: RESUME":                                   &client.DisplacedError{By: "bob@192.0.2.7"},
		client.ErrGone.Error() + ": qt ls host lists the sessions, and qt attach shows what is left of a lost one": client.ErrGone,
		"other": other,
	} {
		if got := explainEnd(err, "host", "RESUME"); got.Error() != want || !errors.Is(got, err) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTerminalMessages(t *testing.T) {
	m := messages{"host", wire.RoleWriter, false, func() string { return "" }}
	since := time.Date(2026, 11, 22, 14, 3, 5, 0, time.Local)
	gap := session.Gap{From: 3, To: 7, Bytes: 12345}
	for _, test := range []struct{ got, want string }{
		{m.Title(client.LinkState{State: migrate.Offline, Since: since, Attempts: 2}), "qt: no contact since 14:03:05, reconnecting (attempt 2)"},
		{m.Title(client.LinkState{State: migrate.Moving, Since: since}), "qt: no contact since 14:03:05"},
		{m.Title(client.LinkState{State: migrate.Live, Backlog: 12_345_678}), "qt: catching up, 12.3 MB left"},
		{m.Gap(gap, true), "12345 bytes of output skipped (frames 3 to 7)"},
		{m.Gap(gap, false), "12345 bytes of output lost, the server has kept no more (frames 3 to 7)"},
		{messages{skips: true}.Gap(gap, false), "12345 bytes of output left out, this client was too far behind (frames 3 to 7)"},
		{m.InputFull(67_000_000), "the program does not read its input: 67.0 MB are waiting, further input is dropped"},
		{m.InputDropped(1500), "the program reads its input again; 1.5 kB were dropped"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}

func TestNotDrawn(t *testing.T) {
	if got, want := notDrawn([]rune{'終', '😀'}),
		"characters that the font of images does not have: 2, drawn as boxes or left out (U+7D42, U+1F600); --ansi and --json have them"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := notDrawn([]rune("一二三四五六七八九十")); !strings.Contains(got, ": 10, ") || !strings.HasSuffix(got, "U+516B, 2 more); --ansi and --json have them") {
		t.Errorf("%q", got)
	}
}
