package program

import (
	"bytes"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA

// processName returns the name that the kernel shows of a process.
func processName(pid int) ([]byte, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return nil, err
	}
	name, _, _ := bytes.Cut(info.Proc.P_comm[:], []byte{0})
	return name, nil
}

// Foreground returns the name of the first process in the foreground of the terminal, and when it was started.
func (p *Process) Foreground() (name string, started time.Time) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", p.group())
	if err != nil {
		return "", started
	}
	comm, _, _ := bytes.Cut(info.Proc.P_comm[:], []byte{0})
	return string(comm), time.Unix(info.Proc.P_starttime.Unix())
}

// growing returns a pipe as it is: the kernel makes it larger if much is written to it.
func growing(pipe *os.File) io.ReadCloser { return pipe }

// The system does not tell what a program waits for.
type members struct{}

// Taken reports that nothing is known.
func (p *Process) Taken() bool { return false }

// Reads reports that nothing is known.
func (p *Process) Reads(time.Time, time.Duration) bool { return false }
