package auth

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	// An agent has an instance of its pipe free when it has taken the connection before: pipeTime bounds how long that may
	// take, and pipePause is the time between two attempts.
	pipeTime  = 5 * time.Second
	pipePause = 10 * time.Millisecond

	pipeBusy = syscall.Errno(231) // ERROR_PIPE_BUSY

	// What listens at a pipe could otherwise act as who connects: SECURITY_SQOS_PRESENT, with SECURITY_ANONYMOUS, which is 0.
	anonymous = 0x00100000
)

// isPipe reports whether a path is that of a named pipe.
func isPipe(path string) bool {
	return strings.HasPrefix(strings.ToLower(strings.ReplaceAll(path, "/", `\`)), `\\.\pipe\`)
}

// dialPipe connects to a named pipe, which can be read while it is written.
func dialPipe(ctx context.Context, path string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, pipeTime)
	defer cancel()
	for {
		file, err := os.OpenFile(path, os.O_RDWR|syscall.FILE_FLAG_OVERLAPPED|anonymous, 0)
		if err == nil {
			return pipe{file}, nil
		}
		if !errors.Is(err, pipeBusy) {
			return nil, err
		}
		select {
		case <-time.After(pipePause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// A pipe is a connection by a named pipe. Its ways are closed together.
type pipe struct{ *os.File }

func (p pipe) CloseWrite() error    { return p.Close() }
func (p pipe) LocalAddr() net.Addr  { return &net.UnixAddr{Name: p.Name(), Net: "pipe"} }
func (p pipe) RemoteAddr() net.Addr { return p.LocalAddr() }
