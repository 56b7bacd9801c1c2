//go:build !unix

package bootstrap

import (
	"os"
	"os/exec"
)

func command(program string, args ...string) *exec.Cmd { return exec.Command(program, args...) }

func interrupt(p *os.Process) { p.Kill() }
