package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/quicterm/quicterm/migrate/carrier/nonblock"
)

// polled returns a writer to our standard output, which it owns. A write to a pipe may block, so the
// scheduler of Go hands the processor to another thread if it takes 20 µs. Therefore polled opens a pipe once
// more, in nonblocking mode: other programs that have the pipe open would not expect writes to fail.
func polled(stdout *os.File) io.WriteCloser {
	if info, err := stdout.Stat(); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return stdout
	}
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", stdout.Fd()), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil { // such as a pipe of another account
		return stdout
	}
	conn, err := nonblock.New(again)
	if err != nil {
		again.Close()
		return stdout
	}
	return &polledPipe{conn, again, stdout}
}

// A polledPipe is a pipe that is open twice. Its reader sees the end when both are closed.
type polledPipe struct {
	*nonblock.Conn
	again, first *os.File
}

// Close implements [io.Closer].
func (p *polledPipe) Close() error {
	p.again.Close()
	return p.first.Close()
}
