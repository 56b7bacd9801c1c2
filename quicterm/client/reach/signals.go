package reach

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// SignalNames has the signals that end qt, by their names without SIG.
var SignalNames = map[syscall.Signal]string{
	syscall.SIGHUP:  "HUP",
	syscall.SIGINT:  "INT",
	syscall.SIGQUIT: "QUIT",
	syscall.SIGTERM: "TERM",
}

// A SignalError ends qt because it received a signal. Its exit status is as of a program that the signal killed.
type SignalError struct {
	Signal syscall.Signal
	Effect string // on the session, or empty if there is none
}

func (e *SignalError) Error() string {
	text := "ended by SIG" + SignalNames[e.Signal]
	if e.Effect != "" {
		text += "; " + e.Effect
	}
	return text
}

// Status returns the exit status.
func (e *SignalError) Status() int { return 128 + int(e.Signal) }

// UntilSignal returns a context that the first of the given signals ends, with a
// *SignalError as the cause. A second signal ends qt at once: its output may block, as on a
// terminal that no program reads.
func UntilSignal(ctx context.Context, signals ...os.Signal) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	received := make(chan os.Signal, 1)
	signal.Notify(received, signals...)
	go func() {
		defer signal.Stop(received)
		select {
		case s := <-received:
			cancel(&SignalError{Signal: s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
