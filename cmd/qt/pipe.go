package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// runPipe runs a command without a terminal: our standard streams are the command's.
func runPipe(ctx context.Context, conn *client.Client, host string, opts *options, req *wire.Attach) error {
	s, err := conn.Attach(ctx, req, client.Streams{
		Stdout: os.Stdout,
		// Without Close: standard error stays open for messages of qt.
		Stderr: struct{ io.Writer }{os.Stderr},
		// The writer of our input gets an error when the command closes its
		// input. A blocked read keeps the file open until it returns.
		InputClosed: func() { os.Stdin.Close() },
	})
	if err != nil {
		return err
	}
	defer showStatus(host, s, opts.verbose)()
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
	stop()
	select {
	case failed := <-readFailed:
		err = errors.Join(failed, err)
	default:
	}
	return result(host, opts, s, status, err)
}

// passSignals passes the first signal that would end qt on to the command. SIGHUP and a
// second signal end qt at once, and the holder hangs the command up. Stop is to be
// called after the session's end.
func passSignals(s *client.Session) (stop func()) {
	names := map[os.Signal]string{syscall.SIGINT: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP"}
	signals := make(chan os.Signal, 1)
	for sig := range names {
		signal.Notify(signals, sig)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for passed := false; ; passed = true {
			select {
			case sig := <-signals:
				if passed || sig == syscall.SIGHUP {
					s.Leave()
				} else {
					wg.Go(func() { s.Signal(names[sig]) }) // blocks while there is no room for input
				}
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(done)
		wg.Wait()
	}
}
