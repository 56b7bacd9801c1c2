//go:build linux || darwin

// Package command runs programs of the system, and returns what they print. They have no environment, no input, no
// terminal and no key of this process's session, and are killed when they take too long or print too much.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/keyring"
)

// maxOutput bounds what a program prints, in bytes: a group of a directory with a million members.
const maxOutput = 16 << 20

// Patience is how long a program may take, with what it asks: most take some milliseconds, unless the machine is starved
// or a directory service does not answer. The caller sets that, for all programs that it runs in this time.
const Patience = 10 * time.Second

// Run runs a program until it or ctx ends, and returns what it has printed to standard output and to standard error. If
// ctx has ended, the error is its cause, also if the program does not end: see [WhenEnded]. start starts the process; nil
// means with a session keyring of its own.
func Run(
	ctx context.Context, start func(*exec.Cmd) error, path string, args ...string,
) (out, complaint []byte, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir = []string{}, "/"
	printed, complained := output{end: cancel}, output{end: cancel}
	cmd.Stdout, cmd.Stderr = &printed, &complained
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = Patience / 10 // to end when it is killed; a child of it may keep its output open
	if start == nil {
		start = keyring.Start
	}
	if err = start(cmd); err == nil {
		var waited error
		ended := make(chan struct{})
		go func() { // for as long as the process exists: that may be for ever
			waited = cmd.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-ctx.Done():
			select {
			case <-ended:
			case <-time.After(cmd.WaitDelay):
				return nil, nil, &stuckError{context.Cause(ctx), ended}
			}
		}
		err = waited
	}
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay): // it has ended well, and has left such a child
		err = nil
	}
	return printed.text.Bytes(), complained.text.Bytes(), err
}

// A stuckError is that of a program that was killed and has not ended: its file system does not answer.
type stuckError struct {
	error
	ended <-chan struct{}
}

func (e *stuckError) Unwrap() error { return e.error }

// WhenEnded calls f when the program has ended whose Run has returned an error, or nil: nearly always that is now.
func WhenEnded(err error, f func()) {
	stuck, ok := errors.AsType[*stuckError](err)
	if !ok {
		f()
		return
	}
	go func() {
		<-stuck.ended
		f()
	}()
}

// An output keeps what a program prints, and ends it if that is too much.
type output struct {
	text bytes.Buffer
	end  context.CancelCauseFunc
}

func (o *output) Write(b []byte) (int, error) {
	if o.text.Len()+len(b) > maxOutput {
		err := fmt.Errorf("it prints more than %d bytes", maxOutput)
		o.end(err)
		return 0, err
	}
	return o.text.Write(b)
}
