//go:build linux || darwin

package programtest

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Stub is a program that a test plays.
type Stub struct {
	In       *io.PipeReader // what the program is given
	Out, Err *io.PipeWriter // what it prints

	pty    bool
	stdin  *io.PipeWriter
	stdout *io.PipeReader
	stderr *io.PipeReader
	ended  chan end

	busy atomic.Bool

	mu      sync.Mutex
	ignores bool
	size    wire.Size
	flags   wire.TerminalFlags
	context uint16
	taken   bool
	reads   bool
	name    string
	started time.Time
	ports   []uint16
	looks   int // for ports
	signals []syscall.Signal
}

// An end is what Wait returns.
type end struct {
	status byte
	killed syscall.Signal
}

// NewStub returns a program that does nothing until the test makes it, except that a signal ends it.
func NewStub(pty bool) *Stub {
	p := &Stub{pty: pty, ended: make(chan end, 1)}
	p.In, p.stdin = io.Pipe()
	p.stdout, p.Out = io.Pipe()
	p.stderr, p.Err = io.Pipe()
	return p
}

func (p *Stub) Stdin() io.WriteCloser { return p.stdin }
func (p *Stub) Stdout() io.ReadCloser { return p.stdout }
func (p *Stub) Drained(uint64) bool   { return !p.busy.Load() }
func (p *Stub) Stderr() io.ReadCloser { return p.stderr }
func (p *Stub) Close()                { p.In.Close(); p.stdout.Close(); p.stderr.Close() }

func (p *Stub) Wait() (status byte, killed syscall.Signal) {
	e := <-p.ended
	return e.status, e.killed
}

func (p *Stub) Resize(s wire.Size) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size = s
	return nil
}

func (p *Stub) Size() wire.Size {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size
}

// SetModes sets what Modes returns.
func (p *Stub) SetModes(flags wire.TerminalFlags, context uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flags, p.context = flags, context
}

func (p *Stub) Modes(time.Time) (flags wire.TerminalFlags, context uint16, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flags, p.context, p.pty
}

// SetProgress sets what Taken and Reads return.
func (p *Stub) SetProgress(taken, reads bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken, p.reads = taken, reads
}

func (p *Stub) Taken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

func (p *Stub) Reads(time.Time, time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads
}

// SetPorts sets what Ports returns.
func (p *Stub) SetPorts(ports ...uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ports = ports
}

// Looks returns how often Ports was called.
func (p *Stub) Looks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.looks
}

func (p *Stub) Ports() []uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	return p.ports
}

// SetForeground sets what Foreground returns.
func (p *Stub) SetForeground(name string, started time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name, p.started = name, started
}

func (p *Stub) Foreground() (name string, started time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.name, p.started
}

func (p *Stub) Signal(sig syscall.Signal) {
	p.mu.Lock()
	p.signals = append(p.signals, sig)
	ignored := p.ignores
	p.mu.Unlock()
	if !ignored {
		p.end(end{byte(128 + int(sig)), sig})
	}
}

func (p *Stub) Hangup(sig syscall.Signal) { p.Signal(sig) }

// Print makes the program print b. It blocks until the output is read, and must not be
// called after the program has ended.
func (p *Stub) Print(b []byte) { p.Out.Write(b) }

// Starve makes it seem that the kernel holds output that is not read.
func (p *Stub) Starve(on bool) { p.busy.Store(on) }

// IgnoreSignals makes the program survive all signals.
func (p *Stub) IgnoreSignals() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ignores = true
}

// Signals returns the signals that were sent to the program.
func (p *Stub) Signals() []syscall.Signal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.signals)
}

// End ends the program and closes its output, unless it has ended.
func (p *Stub) End(status byte) { p.end(end{status: status}) }

// Exit ends the program and leaves its output open, as if processes in the background held it.
func (p *Stub) Exit(status byte) { p.ended <- end{status: status} }

func (p *Stub) end(e end) {
	p.Out.Close()
	p.Err.Close()
	select {
	case p.ended <- e:
	default:
	}
}
