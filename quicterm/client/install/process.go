package install

import (
	"errors"
	"io"
	"os/exec"
	"sync"
)

// A Login is the standard input and output of [Command], which runs on the host.
type Login interface {
	io.ReadWriter
	// CloseWrite ends the input.
	CloseWrite() error
	// ExitStatus waits until the command ends, and returns its status, or -1 if that is not known.
	// All output has been read before.
	ExitStatus() int
	// Close ends the command and makes reads and writes return. It may be called several times.
	Close() error
}

// Start starts a program that runs [Command] on the host, such as ssh.
func Start(cmd *exec.Cmd) (Login, error) {
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
	return &process{out, in, cmd, sync.OnceValue(cmd.Wait)}, nil
}

// A process is the login of a program.
type process struct {
	io.ReadCloser // its standard output
	in            io.WriteCloser
	cmd           *exec.Cmd
	wait          func() error
}

func (p *process) Write(b []byte) (int, error) { return p.in.Write(b) }

func (p *process) CloseWrite() error { return p.in.Close() }

func (p *process) ExitStatus() int {
	var exit *exec.ExitError
	if err := p.wait(); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

func (p *process) Close() error {
	p.cmd.Process.Kill()
	p.ReadCloser.Close() // a child may keep the other end
	return p.wait()
}
