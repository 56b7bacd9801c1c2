//go:build linux || darwin

// Package programtest has programs in memory for tests of sessions. They work on the
// virtual time of package synctest, where processes and terminals do not.
package programtest

import (
	"bytes"
	"io"
	"sync/atomic"
	"syscall"
	"time"
)

// Status is the exit status of an Echo.
const Status = 7

// An Echo is a program that prints what it reads, unless the modes of its terminal say that it is a secret, until
// the end of its input. A signal ends its input.
type Echo struct {
	*Stub
	asleep atomic.Pointer[chan struct{}] // closed when it may read more, or nil
	hidden atomic.Int64                  // bytes of secrets
}

// NewEcho returns a program that runs once Wait is called.
func NewEcho(pty bool) *Echo { return &Echo{Stub: NewStub(pty)} }

func (e *Echo) Signal(syscall.Signal)     { e.In.CloseWithError(io.EOF) }
func (e *Echo) Hangup(sig syscall.Signal) { e.Signal(sig) }

// Sleep makes the program read no more until the channel is closed.
func (e *Echo) Sleep(until chan struct{}) { e.asleep.Store(&until) }

// Hidden returns how many bytes of secrets the program has read.
func (e *Echo) Hidden() int { return int(e.hidden.Load()) }

// Wait is the program. On a terminal, ^D ends its input.
func (e *Echo) Wait() (status byte, killed syscall.Signal) {
	buf := make([]byte, 4096)
	for {
		if c := e.asleep.Load(); c != nil {
			<-*c
		}
		n, err := e.In.Read(buf)
		end := bytes.IndexByte(buf[:n], 4)
		if e.pty && end >= 0 {
			n, err = end, io.EOF
		}
		if flags, _, _ := e.Modes(time.Time{}); flags.Secret() {
			e.hidden.Add(int64(n))
		} else {
			e.Out.Write(buf[:n])
		}
		if err != nil {
			break
		}
	}
	e.Out.Close()
	e.Err.Close()
	return Status, 0
}
