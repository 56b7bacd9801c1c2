//go:build unix

package bootstrap

import (
	"os"
	"os/exec"
	"syscall"
)

// detach gives a command no terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func interrupt(p *os.Process) { p.Signal(syscall.SIGTERM) }
