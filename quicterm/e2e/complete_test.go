//go:build linux || darwin

package e2e

import (
	"slices"
	"strings"
	"testing"
)

// Tab completes the sessions that clients of this machine have on a host.
func TestCompleteSessions(t *testing.T) {
	h := newHost(t)
	h.Start()
	const name = "completed" // that no other test's client has
	h.Shell(h.Addr, "-s", name).Run("echo re''ady", "ready")
	c := h.QT("attach", "")
	c.Args = slices.Insert(c.Args, 1, "__complete")
	out, err := c.Output()
	// Clients of other tests may run, whose sessions are completed too.
	if err != nil || !slices.Contains(strings.Split(string(out), "\n"), name) || !strings.HasSuffix(string(out), "\n:4\n") {
		t.Errorf("the sessions: %v, %q", err, out)
	}
}
