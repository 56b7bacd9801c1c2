//go:build linux

package main

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// Programs are compared in scenarios that there are.
func TestComparedIn(t *testing.T) {
	for _, name := range comparedIn {
		if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }) {
			t.Errorf("no scenario is called %q", name)
		}
	}
}

// What is not installed is named, and the others go on.
func TestInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var told strings.Builder
	present, err := installed(&told, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(present) != 1 || present[0].name() != "quicterm" {
		t.Errorf("%v are there, want quicterm", present)
	}
	for _, want := range []string{"ssh is left out: ssh is not installed.\n", "mosh is left out", "et is left out", "tssh is left out", "tssh-kcp is left out"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("%q is not told: %q", want, told.String())
		}
	}
	if _, err := installed(io.Discard, []string{"mosh"}); err == nil {
		t.Error("nothing can be compared, and no error")
	}
	if _, err := installed(io.Discard, []string{"quicterm", "telnet"}); err == nil || !strings.Contains(err.Error(), "telnet") {
		t.Errorf("an unknown program: %v", err)
	}
}
