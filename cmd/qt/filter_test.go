package main

import (
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// Filters are whole patterns of what a field shows, and all must match.
func TestFilters(t *testing.T) {
	sessions := []wire.Info{
		{Name: "build-1", Phase: wire.PhaseDetached, Command: "make a/b",
			Activity: &wire.Activity{Program: "make", Waits: wire.WaitsNothing}},
		{Name: "build-2", Phase: wire.PhaseAttached, Activity: &wire.Activity{Program: "bash", Waits: wire.WaitsPrompt}},
		{Name: "edit", Phase: wire.PhaseDetached, Activity: &wire.Activity{Program: "vim", Waits: wire.WaitsInput}},
		{Name: "pipe", Phase: wire.PhaseExited},
	}
	for texts, want := range map[string]string{
		"":                              "build-1 build-2 edit pipe",
		"name=build-?":                  "build-1 build-2",
		"name=build-":                   "",
		"name=*":                        "build-1 build-2 edit pipe",
		"name=[be]*":                    "",
		"runs=vim":                      "edit",
		"runs=":                         "pipe",
		"waits=input":                   "edit",
		"waits=*p*":                     "build-2 edit",
		"state=detached":                "build-1 edit",
		"state=detached waits=nothing":  "build-1",
		"state=exited":                  "pipe",
		"command=make*b":                "build-1",
		"name=*2 name=build* runs=bash": "build-2",
	} {
		list, err := parseFilters(strings.Fields(texts))
		if err != nil {
			t.Errorf("%s: %v", texts, err)
		}
		var names []string
		for _, s := range list.of(describe(sessions)) {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", texts, got, want)
		}
	}
	for text, want := range map[string]string{
		"edit":          "a filter is FIELD=PATTERN",
		"host=x":        `there is no field "host": filters are for name, state, runs, waits and command`,
		"state=waiting": "the field state is one of attached, detached, exited, lost",
		"waits=":        "the field waits is one of prompt, input, nothing",
	} {
		if _, err := parseFilters([]string{text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// The list says what runs, what that waits for, and since when.
func TestListOfActivity(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, test := range []struct {
		activity *wire.Activity
		want     string
	}{
		{nil, "- - - sh"},
		{&wire.Activity{Program: "vim", Waits: wire.WaitsInput, Since: now.Unix() - 300}, "- vim input 5m sh"},
		{&wire.Activity{Program: "bash", Waits: wire.WaitsPrompt, Since: now.Unix()}, "- bash prompt 0s sh"},
		{&wire.Activity{Waits: wire.WaitsNothing}, "- - nothing sh"},
		{&wire.Activity{Program: "vim", Since: now.Unix() - 300}, "- vim - sh"},
	} {
		var b strings.Builder
		info := wire.Info{PTY: true, Phase: wire.PhaseDetached, Command: "sh", Activity: test.activity}
		if err := printTable(&b, describe([]wire.Info{info}), now); err != nil {
			t.Fatal(err)
		}
		if words := strings.Join(strings.Fields(b.String()), " "); !strings.HasSuffix(words, " "+test.want) {
			t.Errorf("want %q in\n%s", test.want, b.String())
		}
	}
}
