//go:build !unix

package bootstrap

import (
	"os"
	"os/exec"
)

func detach(*exec.Cmd) {}

func interrupt(p *os.Process) { p.Kill() }
