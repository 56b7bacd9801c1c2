package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A polledPipe is a pipe that is open twice. Its reader sees the end when both are closed.
type polledPipe struct {
	io.WriteCloser
	first *os.File
}

// Close implements [io.Closer].
func (p *polledPipe) Close() error {
	p.WriteCloser.Close()
	return p.first.Close()
}

// polled returns a writer to our standard output, which it owns. A write to a pipe may block, so the scheduler of Go
// hands the processor to another thread if it takes 20 µs. Therefore the pipe is opened once more, if possible.
func polled(stdout *os.File) io.WriteCloser {
	if info, err := stdout.Stat(); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return stdout
	}
	if again := terminal.Polled(stdout, os.O_WRONLY); again != nil {
		return &polledPipe{again, stdout}
	}
	return stdout
}

// runPipe runs a command without a terminal: our standard streams are the command's.
func runPipe(ctx context.Context, a *reach.Access, host string, opts *options, req *wire.Attach) error {
	s, err := a.Client.Attach(ctx, req, client.Streams{
		Stdout: polled(os.Stdout),
		// Without Close: standard error stays open for messages of qt.
		Stderr: struct{ io.Writer }{os.Stderr},
		// The writer of our input gets an error when the command closes its
		// input. A blocked read keeps the file open until it returns.
		InputClosed: func() { os.Stdin.Close() },
		Ending:      func(by string) { say("%s", terminal.EndingText(by)) },
	})
	if err != nil {
		return err
	}
	defer showStatus(host, s, opts)()
	readFailed := make(chan error, 1)
	go func() { // ends with the process at the latest
		_, err := io.Copy(s, os.Stdin)
		var path *fs.PathError // of reading: writing to a session has no path
		if errors.As(err, &path) && !errors.Is(err, os.ErrClosed) {
			readFailed <- fmt.Errorf("read the input: %w", path.Err)
		}
		s.CloseWrite()
	}()
	stop := passSignals(s)
	status, err := s.Run(context.WithoutCancel(ctx))
	sig := stop()
	select {
	case failed := <-readFailed:
		err = errors.Join(failed, err)
	default:
	}
	if errors.Is(err, client.ErrLeft) {
		return &reach.SignalError{Signal: sig, Effect: commandHungUp}
	}
	return result(host, opts, s, status, err)
}
