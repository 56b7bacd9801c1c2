package bootstrap

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// An OwnLogin logs in by ssh without the ssh program, runs a command and returns its standard
// input and output. It blocks until the command has been started, or ctx ends. If ask is false, it
// asks the user nothing. What the command writes to standard error goes to errs until the stream
// is closed. If the stream has a method ExitStatus, that waits until the command ends; -1 means
// that its status is not known. Close may be called several times.
//
// If the login fails for a reason that ssh would have too, the error is a *LoginError.
type OwnLogin func(ctx context.Context, ask bool, command string, errs io.Writer) (io.ReadWriteCloser, error)

// An own is the stream of a carrier that leads over an ssh connection of our own.
type own struct {
	ssh   *SSH
	ask   bool
	first chan []byte // what is written first, once
	stop  context.CancelFunc

	opened bool               // the first bytes were written
	ready  chan struct{}      // closed when the stream has begun or the login has failed
	err    error              // why it failed, or nil; valid once ready
	stream io.ReadWriteCloser // valid once ready, if there is no error
	rd     *bufio.Reader      // of the stream
	answer *time.Timer        // ends the stream unless the daemon answers
	silent atomic.Bool        // it did not
	done   chan struct{}      // closed when all has ended
}

// startOwn starts a login.
func startOwn(s *SSH, ask bool) *own {
	ctx, cancel := context.WithCancel(context.Background())
	o := &own{ssh: s, ask: ask, stop: cancel, first: make(chan []byte, 1), ready: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(o.done)
		defer s.forget(o)
		errs := &tail{log: s.Log}
		err := o.login(ctx, errs)
		if err != nil {
			s.failed(ask, err)
			o.err = &StartError{err}
		} else {
			o.answer = time.AfterFunc(cmp.Or(s.wait, answerTime), func() {
				o.silent.Store(true)
				cancel()
			})
		}
		close(o.ready)
		if err == nil {
			<-ctx.Done()
		}
		if o.stream != nil {
			o.stream.Close()
		}
	}()
	return o
}

// login waits for what is written first, logs in, writes that, and reads the grant.
func (o *own) login(ctx context.Context, errs *tail) error {
	var first []byte
	select {
	case first = <-o.first:
	case <-ctx.Done():
		return errClosed
	}
	host, limit := o.ssh.Host, batchTime
	if o.ask {
		limit = askTime
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, &LoginError{host, tooLong})
	limited, end := context.WithCancelCause(limited)
	var knocked sync.WaitGroup
	if o.ask {
		knocked.Go(func() {
			if err := o.ssh.unanswered(limited); err != nil {
				end(err)
			}
		})
	}
	stream, err := o.ssh.Own(limited, o.ask, remoteCommand(first), errs)
	end(nil)
	cancel()
	knocked.Wait()
	if err != nil {
		return err
	}
	o.stream, o.rd = stream, bufio.NewReaderSize(stream, maxLine)
	var late atomic.Bool
	timer := time.AfterFunc(cmp.Or(o.ssh.wait, grantTime), func() {
		late.Store(true)
		stream.Close()
	})
	defer timer.Stop()
	defer context.AfterFunc(ctx, func() { stream.Close() })()
	stream.Write(OpenLine(first)) // if it fails, what is read says why
	text, prefix, err := find(o.rd, linePrefix, missingPrefix, openPrefix)
	switch {
	case ctx.Err() != nil:
		return errClosed
	case late.Load():
		return silentError(host)
	case prefix == linePrefix:
		grant, err := parseGrant(text)
		if err == nil {
			err = o.ssh.learn(grant, o.ask)
		}
		return err
	case prefix != "":
		return noGrant(host, text, prefix)
	}
	var missing *noGrantError
	if !errors.As(err, &missing) || errors.Is(err, errNoise) {
		return fmt.Errorf("%s: %w", host, err)
	}
	status := -1
	if s, ok := stream.(interface{ ExitStatus() int }); ok {
		status = s.ExitStatus() // or the timer ends it
	}
	stream.Close() // nothing is written to errs after that
	return programError(host, status, errs.lines(), missing.last)
}

// Write implements [pipe.Stream].
func (o *own) Write(b []byte) (int, error) {
	if !o.opened {
		o.opened = true
		o.first <- append([]byte(nil), b...)
		return len(b), nil
	}
	if <-o.ready; o.err != nil {
		return 0, o.err
	}
	return o.stream.Write(b)
}

// Read implements [pipe.Stream].
func (o *own) Read(b []byte) (int, error) {
	if <-o.ready; o.err != nil {
		return 0, o.err
	}
	n, err := o.rd.Read(b)
	o.answer.Stop()
	if err != nil && o.silent.Load() {
		err = errSilent
	}
	return n, err
}

// Close implements [pipe.Stream]. It does not wait for the login.
func (o *own) Close() error {
	o.stop()
	return nil
}

func (o *own) over() <-chan struct{} { return o.done }
