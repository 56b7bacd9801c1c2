package holder

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Directory returns the working directory of the first process in the foreground, or of the program's
// if that is of another account, or an empty string.
func (p *process) Directory() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped || p.terminal == nil {
		return ""
	}
	var dir string
	control(p.terminal, func(fd int) error {
		group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		if err == nil && group > 0 {
			dir, err = os.Readlink("/proc/" + strconv.Itoa(group) + "/cwd")
		}
		return err
	})
	if dir == "" {
		dir, _ = os.Readlink("/proc/" + strconv.Itoa(p.pid) + "/cwd")
	}
	return dir
}
