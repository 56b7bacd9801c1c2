//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
)

// sshPort is where a stage's sshd listens: nothing else runs in its namespace.
const sshPort = 2222

// An sshProgram is OpenSSH.
type sshProgram struct{}

func (sshProgram) name() string    { return "ssh" }
func (sshProgram) missing() string { return notInstalled("ssh", sshdPath) }

func (sshProgram) serve(m *measurement, s stage) served {
	n := onNetns(m, s)
	return sshServed{n, n.startSSH(m)}
}

type sshServed struct {
	*netnsStage
	ssh *sshServer
}

func (s sshServed) command(_ *seat, shell string) *exec.Cmd {
	return s.ssh.client(underSh(shell), "-t")
}

func (s sshServed) processes(m *measurement) []int { return s.servers(m) }

// onNetns returns the stage that programs other than quicterm need: it carries TCP,
// and all that runs in the server's namespace is theirs.
func onNetns(m *measurement, s stage) *netnsStage {
	n, ok := s.(*netnsStage)
	if !ok {
		m.Fatal("needs network namespaces")
	}
	return n
}

// startSSH starts an sshd in the server's namespace. Other programs log in by it too.
func (s *netnsStage) startSSH(m *measurement) *sshServer {
	return startSSH(m, s.host(), netip.AddrPortFrom(s.host().Addr.Addr(), sshPort))
}

// underSh returns a command of any shell that runs a command of sh.
func underSh(shell string) string { return "exec sh -c " + shellQuote(shell) }

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// notInstalled says which of some programs cannot be found, or "".
func notInstalled(programs ...string) string {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Sprintf("%s is not installed", p)
		}
	}
	return ""
}
