//go:build linux || darwin

package e2e

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// What is typed into an outage shows on a fast path too: also just after an attach, when the client has
// learned nothing yet, and behind the prompt that follows Enter.
func TestTypingIntoOutage(t *testing.T) {
	h := newHost(t)
	h.Start()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	p := h.Proxy(netem.Config{Delay: 5 * time.Millisecond})
	first := rig.Open(t, h.Via(h.Addr, "connect", []string{"-t", "-s", "work"}, "exec env PS1='$ ' HISTFILE= "+bash+" --norc --noprofile -i"))
	first.Expect(`\$ `)
	first.Send("~.")
	first.Exit()
	shows := func(x *rig.Terminal) bool {
		p.Set(netem.Config{Down: true})
		for _, key := range []string{"Q", "W", "Y"} { // in no control sequence that is drawn
			x.Send(key)
		}
		for until := time.Now().Add(2 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			shown := x.Out.String()[x.Read:]
			if strings.Contains(shown, "Q") && strings.Contains(shown, "W") && strings.Contains(shown, "Y") {
				return true
			}
		}
		return false
	}
	// On a busy machine the first hint comes late, and nothing tells that it has come: each attempt waits longer.
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		x := rig.Open(t, h.Via(p.Addr(), "attach", nil, "work"))
		x.Expect(`\$ `)
		time.Sleep(pause)
		attached := shows(x)
		p.Set(netem.Config{Delay: 5 * time.Millisecond})
		x.Send("\r")
		x.Expect("not found")
		x.Expect(`\$ `)
		time.Sleep(pause)
		entered := shows(x)
		p.Set(netem.Config{Delay: 5 * time.Millisecond})
		x.Send("\r")
		x.Expect("not found")
		if attached && entered {
			return
		}
		if pause > 2*time.Second {
			t.Fatalf("what is typed into an outage shows after the attach: %v, after Enter: %v\n%s", attached, entered, x.Out)
		}
	}
}
