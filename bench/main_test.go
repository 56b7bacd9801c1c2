//go:build linux

package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quicterm/quicterm/bench/scenario"
)

// Programs are compared in scenarios that exist.
func TestCompared(t *testing.T) {
	names := scenario.Names()
	for _, name := range compared {
		if !slices.Contains(names, name) {
			t.Errorf("no scenario is called %q", name)
		}
	}
}

// What compare cannot read gives another exit status than what got worse.
func TestCompareExitStatus(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.jsonl")
	for _, args := range [][]string{{none, none}, {none}, {none, none, "--portible"}} {
		command := compareCommand()
		var out bytes.Buffer
		command.SetOut(&out)
		command.SetErr(&out)
		command.SetArgs(args)
		if err := command.Execute(); err == nil || exitStatus(err) != 2 {
			t.Errorf("%q: %v, want exit status 2:\n%s", args, err, &out)
		}
	}
}
