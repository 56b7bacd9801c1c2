//go:build linux || darwin

package e2e

import (
	"fmt"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/rig"
)

// An unknown host key is accepted only by an answer on a terminal, and then kept.
func TestUnknownHost(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Write("known_hosts", "")
	cmd := h.QT("connect", "true")
	cmd.SysProcAttr = noTerminal
	wantError(t, cmd, "is not known: ssh-ed25519 SHA256:.*connect once from a terminal")

	x := rig.Open(t, h.QT("connect", "echo let in"))
	x.Expect(`not known.*\r\n.*SHA256:[^ ]+\r\n.*\(yes/no\)\? `)
	x.Send("what\r")
	x.Expect("yes or no: ")
	x.Send("no\r")
	x.Expect("you did not accept the server's key")
	if got := x.Exit(); got != 255 {
		t.Errorf("exit status after no: %d, want 255", got)
	}

	x = rig.Open(t, h.QT("connect", "echo let in"))
	x.Expect(`\(yes/no\)\? `)
	x.Send("yes\r")
	x.Expect("let in\r\n")
	wantOutput(t, h.QT("connect", "echo known"), "known\n")
}

// A host key that cannot be written to known_hosts is accepted for one connection.
func TestUnknownHostNotKept(t *testing.T) {
	h := newHost(t)
	h.Start()
	for _, file := range []string{"/dev/null", "/proc/known_hosts"} {
		h.Client = map[string]string{"known_hosts_files": fmt.Sprintf("[%q]", file)}
		x := rig.Open(t, h.QT("connect", "echo let in"))
		x.Expect(`\(yes/no\)\? `)
		x.Send("yes\r")
		x.Expect("qt: the key of .* is accepted for this connection only: it (was|could not be) saved.*\r\n")
		x.Expect("let in\r\n")
	}
}

// A changed host key is refused without a question, and so is a revoked one.
func TestChangedHost(t *testing.T) {
	h := newHost(t)
	h.Start()
	other := h.NewKey("other")
	h.Write("known_hosts", "")
	h.Know(h.Addr, h.Path("other.pub"))
	wantError(t, h.QT("connect", "true"), "has changed.*known_hosts:1.*may be an attack")
	// On a terminal as well.
	x := rig.Open(t, h.QT("connect", "true"))
	x.Expect("has changed")
	if got := x.Exit(); got != 255 {
		t.Errorf("exit status %d, want 255", got)
	}
	// A revoked key of the server.
	h.Stop(syscall.SIGKILL)
	h.Write("host_key", h.Read("other"))
	h.Write("host_key.pub", h.Read("other.pub"))
	h.Start()
	h.Write("known_hosts", "@revoked * "+string(ssh.MarshalAuthorizedKey(other)))
	wantError(t, h.QT("connect", "true"), "is revoked")
}

// A host key that ssh knows for port 22 is accepted at the port of the daemon. Another
// key counts as unknown, not as changed.
func TestHostKnownToSSH(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Write("known_hosts", "127.0.0.1 "+h.Read("host_key.pub"))
	wantOutput(t, h.QT("connect", "echo in"), "in\n")
	h.NewKey("other")
	h.Write("known_hosts", "127.0.0.1 "+h.Read("other.pub"))
	cmd := h.QT("connect", "true")
	cmd.SysProcAttr = noTerminal
	wantError(t, cmd, "is not known")
}
