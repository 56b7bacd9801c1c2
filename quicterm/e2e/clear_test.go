//go:build linux || darwin

package e2e

import (
	"strings"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// What was printed is not shown to the next client after qt clear-history, which says how much it was.
func TestClearHistory(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Run("seq 1000000 1002000; echo sec''ret; clear; echo be''fore", "before")
	x.Run("echo next", "next")
	out, err := h.QT("clear-history", "work").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "session work has forgotten ") {
		t.Fatalf("%v, %s", err, out)
	}
	x.Send("\r~.")
	x.Exit()
	y := rig.Open(t, h.QT("attach", "--replay", "raw", "work"))
	y.Run("echo on", "on")
	if shown := y.Out.String(); strings.Contains(shown, "secret") || strings.Contains(shown, "1000500") {
		t.Errorf("it is shown again: %q", shown)
	}
}
