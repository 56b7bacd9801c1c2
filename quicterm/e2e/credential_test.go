//go:build linux || darwin

package e2e

import (
	"os/exec"
	"os/user"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/rig"
)

// The log says by which key ssh has let a client in, as far as sshd tells that, also when the client comes
// back to the next daemon.
func TestSSHKeyLogged(t *testing.T) {
	s := newSSHHost(t)
	s.Start()
	s.Serve("ExposeAuthInfo yes")
	x := rig.Open(t, s.QT("connect", []string{"-t"}, "exec env PS1='$ ' HISTFILE= sh"))
	x.Expect(`\$ `)
	reported := `proof=ssh reported="publickey ` + regexp.QuoteMeta(ssh.FingerprintSHA256(s.Key)) + `" `
	for _, event := range []string{"grant", "login", "start", "attach"} {
		s.Log.Await(t, 0, regexp.MustCompile(reported+"(.* )?event="+event))
	}
	s.Stop(syscall.SIGKILL)
	from := s.Log.Len()
	s.Start()
	x.Run("echo re''turned", "returned")
	s.Log.Await(t, from, regexp.MustCompile(reported+".*event=resume"))
}

// The log says which certificate a client has, and who has signed it.
func TestCertificateLogged(t *testing.T) {
	h := newHost(t)
	authority := h.NewKey("ca")
	h.Write("authorized_keys", "cert-authority "+string(ssh.MarshalAuthorizedKey(authority)))
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip(err)
	}
	mustOutput(t, exec.Command("ssh-keygen", "-q", "-s", h.Path("ca"), "-I", "anna's laptop", "-z", "7", "-n", me.Username, h.Path("id.pub")))
	h.Start()
	wantOutput(t, h.QT("connect", "echo in"), "in\n")
	line := strings.Join([]string{"proof=" + ssh.FingerprintSHA256(h.Key), `certificate="anna's laptop"`, "serial=7",
		"ca=" + ssh.FingerprintSHA256(authority), "event=login"}, " ")
	h.Log.Await(t, 0, regexp.MustCompile(regexp.QuoteMeta(line)))
}
