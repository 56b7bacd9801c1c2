package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/client"
)

// signalNames has the signals that end qt, by their names without SIG.
var signalNames = map[syscall.Signal]string{
	syscall.SIGHUP:  "HUP",
	syscall.SIGINT:  "INT",
	syscall.SIGQUIT: "QUIT",
	syscall.SIGTERM: "TERM",
}

// A signalError ends qt because it received a signal. Its exit status is as of a program
// that the signal killed.
type signalError struct {
	signal syscall.Signal
	effect string // on the session, or empty if there is none
}

func (e *signalError) Error() string {
	text := "ended by SIG" + signalNames[e.signal]
	if e.effect != "" {
		text += "; " + e.effect
	}
	return text
}

func (e *signalError) status() int { return 128 + int(e.signal) }

// untilSignal returns a context that the first of the given signals ends, with a
// *signalError as the cause. A second signal ends qt at once: its output may block, as on a
// terminal that no program reads.
func untilSignal(ctx context.Context, signals ...os.Signal) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	received := make(chan os.Signal, 1)
	signal.Notify(received, signals...)
	go func() {
		defer signal.Stop(received)
		select {
		case s := <-received:
			cancel(&signalError{signal: s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// passSignals passes the first signal that would end qt on to the command. SIGHUP and a
// second signal end qt at once, and the holder hangs the command up. Stop is to be
// called after the session's end; it returns the signal that ended qt, or 0.
func passSignals(s *client.Session) (stop func() syscall.Signal) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	var ended syscall.Signal
	var wg sync.WaitGroup
	wg.Go(func() {
		for passed := false; ; passed = true {
			select {
			case received := <-signals:
				sig := received.(syscall.Signal)
				if passed || sig == syscall.SIGHUP {
					ended = sig
					s.Leave()
					continue
				}
				if sig != syscall.SIGINT { // which the user types, and the command is to answer
					say(signalPassed, signalNames[sig])
				}
				wg.Go(func() { s.Signal(signalNames[sig]) }) // blocks while there is no room for input
			case <-done:
				return
			}
		}
	})
	return func() syscall.Signal {
		signal.Stop(signals)
		close(done)
		wg.Wait()
		return ended
	}
}
