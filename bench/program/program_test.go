//go:build linux

package program

import (
	"io"
	"strings"
	"testing"
)

// Installed names the programs that are missing and returns the others.
func TestInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var told strings.Builder
	present, err := Installed(&told, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(present) != 1 || present[0].Name() != "quicterm" {
		t.Errorf("%v are there, want quicterm", present)
	}
	for _, want := range []string{"ssh is left out: ssh is not installed.\n", "mosh is left out", "et is left out",
		"tssh is left out", "tssh-kcp is left out"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("%q is not told: %q", want, told.String())
		}
	}
	if _, err := Installed(io.Discard, []string{"mosh"}); err == nil {
		t.Error("nothing can be compared, and no error")
	}
	if _, err := Installed(io.Discard, []string{"quicterm", "telnet"}); err == nil ||
		!strings.Contains(err.Error(), "telnet") {
		t.Errorf("an unknown program: %v", err)
	}
}
