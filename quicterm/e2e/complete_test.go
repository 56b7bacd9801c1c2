//go:build linux || darwin

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// Tab completes the sessions of a host that answers at once, without a client on this machine.
func TestCompleteSessions(t *testing.T) {
	h := newHost(t)
	h.Start()
	const name = "completed" // that no other test's client has
	x := h.Shell(h.Addr, "-s", name)
	x.Send("\r~.")
	x.Expect("qt: left; ")
	x.Exit()
	for until := time.Now().Add(rig.Patience); ; {
		c := h.QT("attach", "")
		c.Args = slices.Insert(c.Args, 1, "__complete")
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		// Clients of other tests may run, whose sessions are completed too.
		if slices.Contains(strings.Split(string(out), "\n"), name) && strings.HasSuffix(string(out), "\n:4\n") {
			return
		}
		if time.Now().After(until) { // a busy server may need longer than Tab waits
			t.Fatalf("the sessions: %q", strings.TrimSpace(string(out)))
		}
	}
}
