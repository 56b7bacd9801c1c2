//go:build linux

package main

import (
	"os/exec"
	"strings"
)

// A tsshProgram is trzsz-ssh over UDP: it starts its server by its own ssh.
type tsshProgram struct{ mode string }

// Modes of tssh.
const (
	tsshQUIC = "QUIC" // as it is by default
	tsshKCP  = "KCP"
)

func (p tsshProgram) name() string {
	if p.mode == tsshQUIC {
		return "tssh"
	}
	return "tssh-" + strings.ToLower(p.mode)
}

func (tsshProgram) missing() string { return notInstalled("tssh", "tsshd", sshdPath) }

func (p tsshProgram) serve(m *measurement, s stage) served {
	n := onNetns(m, s)
	tsshd, err := exec.LookPath("tsshd")
	if err != nil {
		m.Fatal(err)
	}
	return tsshServed{n, n.startSSH(m), []string{"--udp", "--tsshd-path", tsshd, "-o", "UdpMode=" + p.mode}}
}

type tsshServed struct {
	*netnsStage
	ssh   *sshServer
	flags []string
}

func (s tsshServed) command(_ *seat, shell string) *exec.Cmd {
	args := append(s.ssh.flags(), s.flags...)
	cmd := exec.Command("tssh", append(args, "-t", s.ssh.destination(), underSh(shell))...)
	cmd.Env = s.host().Env()
	return cmd
}

func (s tsshServed) processes(m *measurement) []int { return s.servers(m) }
