package main

import (
	"errors"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/reach"
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
		"qt attach anna@host work": {Options: reach.Options{Verbose: true, Redundant: true}},
		"qt attach -p 5000 -l bob -i a -i b -F config anna@host work": {Options: reach.Options{
			Port: 5000, User: "bob", Identities: []string{"a", "b"}, Config: "config",
		}},
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
