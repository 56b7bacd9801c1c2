//go:build linux

package main

import (
	"os/exec"

	"github.com/quicterm/quicterm/bench/rig"
)

// A quictermProgram is qt and qtd as they are released.
type quictermProgram struct{}

func (quictermProgram) name() string    { return "quicterm" }
func (quictermProgram) missing() string { return "" }

func (quictermProgram) serve(m *measurement, s stage) served {
	h := s.host()
	for key, value := range manyClients {
		h.Settings[key] = value
	}
	h.Start()
	return quictermServed{h}
}

type quictermServed struct{ host *rig.Host }

func (s quictermServed) command(at *seat, shell string) *exec.Cmd {
	return s.host.Via(at.addr, "connect", []string{"-t"}, shell)
}

// processes are the daemon and the holders.
func (s quictermServed) processes(m *measurement) []int {
	return append(holders(m, s.host), s.host.Daemon.Process.Pid)
}
