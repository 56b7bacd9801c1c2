package account

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// readAs reads a file in a child process that has the rights of the account: on
// macOS a thread cannot have rights of its own.
func (a *Account) readAs(name string, groups []uint32) ([]byte, error) {
	cmd := exec.Command("/bin/cat", "--", name)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: a.UID, Gid: a.GID, Groups: groups},
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(out, maxFile+1))
	if len(content) > maxFile {
		cmd.Process.Kill()
		err = fmt.Errorf("%s: larger than %d bytes", name, maxFile)
	}
	if waitErr := cmd.Wait(); err == nil {
		err = waitErr
	}
	return content, err
}
