//go:build linux

package program

import (
	"os/exec"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/topology"
)

// Bare runs commands on a terminal of this machine: no remote terminal can be faster.
type Bare struct{}

func (Bare) Name() string                               { return "bare terminal" }
func (Bare) Missing() string                            { return "" }
func (Bare) Serve(*measure.T, topology.Topology) Server { return bareServer{} }

type bareServer struct{}

func (bareServer) Command(_ *topology.Machine, shell string) *exec.Cmd {
	return exec.Command("sh", "-c", shell)
}

func (bareServer) Processes(*measure.T) []int { return nil }
