//go:build linux || darwin

package e2e

import (
	"regexp"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// Who attaches without naming a session chooses from a list, with one login.
func TestChooseSession(t *testing.T) {
	h := newHost(t)
	h.Start()
	for _, name := range []string{"alpha", "beta"} {
		x := h.Shell(h.Addr, "-s", name)
		x.Run("here="+name+"; echo in_$here", "in_"+name)
		x.Send("\r~.")
		x.Exit()
	}
	logins := len(regexp.MustCompile("client logged in").FindAllString(h.Log.String(), -1))
	x := rig.Open(t, h.QT("attach"))
	x.Expect(`Which session, by its name or the beginning of it \(Enter for beta, or no\)\?`)
	x.Send("x\r") // of none: it is asked again
	x.Expect(`qt: no session begins with "x", or more than one does`)
	x.Expect("Which session")
	x.Send("al\r")
	x.Expect("in_alpha")
	x.Run("echo still_$here", "still_alpha")
	if now := len(regexp.MustCompile("client logged in").FindAllString(h.Log.String(), -1)); now != logins+1 {
		t.Errorf("%d logins, want one", now-logins)
	}

	// Another client takes the session over. The first is told by which machine.
	y := rig.Open(t, h.QT("attach", "alpha"))
	y.Expect("still_alpha")
	x.Expect(`taken over by \S+@127\.0\.0\.1 \(its machine says that it is \S+\)`)
	if status := x.Exit(); status != 255 {
		t.Errorf("status %d", status)
	}

	// The name may change meanwhile, and lasts. The client says it, and not the one that it came with.
	if out, err := h.QT("rename", "alpha", "gamma").CombinedOutput(); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	h.Stop(syscall.SIGTERM)
	h.Start()
	y.Run("echo on", "on")
	y.Send("\r~.")
	y.Expect("qt: left; qt attach .* gamma resumes, qt kill .* gamma ends it")
	y.Exit()
	z := rig.Open(t, h.QT("attach", "gamma"))
	z.Run("echo again_$here", "again_alpha")
}
