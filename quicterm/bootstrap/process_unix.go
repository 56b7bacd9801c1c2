//go:build unix

package bootstrap

import (
	"os"
	"os/exec"
	"syscall"
)

// command returns a command that ignores signals of the terminal: they are for the program of the
// session, and ssh must outlive them.
func command(program string, args ...string) *exec.Cmd {
	return exec.Command("/bin/sh", append([]string{"-c", `trap '' INT QUIT; exec "$@"`, "sh", program}, args...)...)
}

func interrupt(p *os.Process) { p.Signal(syscall.SIGTERM) }
