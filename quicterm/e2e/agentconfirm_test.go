//go:build linux || darwin

package e2e

import (
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/agent"

	"github.com/quicterm/quicterm/bench/rig"
)

// signLater asks an agent for a signature of its key, and checks that.
func (a *clientAgent) signLater(t *testing.T, socket string) <-chan error {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		defer c.Close()
		signed := []byte("signed")
		signature, err := agent.NewClient(c).Sign(a.key, signed)
		if err == nil {
			err = a.key.Verify(signed, signature)
		}
		done <- err
	}()
	return done
}

// openConfirming opens a session whose client asks for each signature, and returns SSH_AUTH_SOCK there.
func openConfirming(t *testing.T, h *rig.Host, mine *clientAgent) (x *rig.Terminal, socket string) {
	t.Helper()
	x = rig.Open(t, mine.with(h.Via(h.Addr, "connect", []string{"-t", "--agent-confirm", "-s", "work"}, "exec env PS1='$ ' HISTFILE= sh")))
	x.Run("echo here", "here")
	socket = agentSocket(t, x)
	awaitKeys(t, "unasked", socket, "mine").Close()
	return x, socket
}

// With --agent-confirm, each signature waits until the person at the client allows or refuses it, or the agent is taken away.
func TestAgentConfirm(t *testing.T) {
	h := newHost(t)
	h.Start()
	mine := startAgent(t, h, "mine")
	x, socket := openConfirming(t, h, mine)
	what := `sign with ssh-ed25519 SHA256:\S+ \(mine\)`
	ask := func() (done <-chan error, number string) {
		t.Helper()
		done = mine.signLater(t, socket)
		x.Expect(`\[qt: \S+ asks to ` + what + `: ~< answers\]`)
		x.Send("\r~<")
		number = x.Expect(`\[qt: \S+ asks to ` + what + `: (\d{3}) allows it, n refuses it, Enter leaves\]`)[1]
		return done, number
	}
	signed, number := ask()
	x.Send(number + "\r")
	x.Expect("allowed: " + what)
	if err := <-signed; err != nil {
		t.Error(err)
	}
	refused, _ := ask()
	x.Send("n\r")
	x.Expect("refused: " + what)
	if err := <-refused; err == nil {
		t.Error("it signs what was refused")
	}
	cut, _ := ask()
	beside := rig.Open(t, h.Via(h.Addr, "attach", []string{"--share"}, "work"))
	beside.Run("echo beside", "beside")
	if err := <-cut; err == nil {
		t.Error("it signs for a session in which another client types")
	}
	for start, ended := time.Now(), false; !ended; time.Sleep(10 * time.Millisecond) { // the server knows first
		if time.Since(start) > rig.Patience {
			t.Fatal("the client asks still, for an agent that was cut off")
		}
		x.Send("x\r")
		ended = x.Expect(`\d{3} allows it|nothing is asked`)[0] == "nothing is asked"
	}
	if st := statusOf(t, x.Cmd); st == nil || len(st.Forwards) != 1 || st.Forwards[0].Signatures != 1 {
		t.Errorf("qt status: %+v", st)
	}
	for want, flags := range map[string][]string{
		"it needs one, as of -t": {"--agent-confirm"}, "exclude each other": {"-t", "-A=false", "--agent-confirm"},
	} {
		out, err := mine.with(h.Via(h.Addr, "connect", flags, "true")).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v\n%s", flags, err, out)
		}
	}
}
