//go:build linux

package main

import (
	"os/exec"
	"strings"
)

// A moshProgram is mosh as people use it: its server is started by ssh, and it
// predicts echoes as it wants.
type moshProgram struct{}

func (moshProgram) name() string { return "mosh" }
func (moshProgram) missing() string {
	return notInstalled("mosh", "mosh-server", "mosh-client", "ssh", sshdPath)
}

func (moshProgram) serve(m *measurement, s stage) served {
	n := onNetns(m, s)
	return moshServed{n, n.startSSH(m)}
}

type moshServed struct {
	*netnsStage
	ssh *sshServer
}

func (s moshServed) command(_ *seat, shell string) *exec.Cmd {
	ssh := []string{"ssh"}
	for _, arg := range s.ssh.flags() {
		ssh = append(ssh, shellQuote(arg))
	}
	cmd := exec.Command("mosh", "--ssh="+strings.Join(ssh, " "), s.ssh.destination(), "--", "sh", "-c", shell)
	cmd.Env = append(s.host().Env(), "LC_ALL=C.UTF-8") // it wants UTF-8 at both ends
	return cmd
}

func (s moshServed) processes(m *measurement) []int { return s.servers(m) }
