package install

import (
	"errors"
	"io"
	"os/exec"
	"sync"
)

// A Process runs [Command] on the host, such as ssh. It reads and writes the command's standard output and input.
type Process struct {
	io.ReadCloser // its standard output
	in            io.WriteCloser
	cmd           *exec.Cmd
	wait          func() error
}

// Start starts the program of a process.
func Start(cmd *exec.Cmd) (*Process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Process{out, in, cmd, sync.OnceValue(cmd.Wait)}, nil
}

// Write writes to the command's standard input.
func (p *Process) Write(b []byte) (int, error) { return p.in.Write(b) }

// CloseWrite ends the input.
func (p *Process) CloseWrite() error { return p.in.Close() }

// ExitStatus waits until the command ends, and returns its status, or -1 if that is not known. All output
// must have been read before.
func (p *Process) ExitStatus() int {
	var exit *exec.ExitError
	if err := p.wait(); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// Close ends the command and makes reads and writes return. It may be called several times.
func (p *Process) Close() error {
	p.cmd.Process.Kill()
	p.ReadCloser.Close() // a child may keep the other end
	return p.wait()
}
