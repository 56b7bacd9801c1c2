//go:build linux || darwin

package holder

import (
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session"
)

const (
	// readSize is how much output is read at once: what makes a frame of which
	// a whole number fills a segment of the ring.
	readSize = 16<<10 - buffer.Overhead

	// minFrame is the least that output is divided into: about a packet.
	minFrame = 1000

	// quiet is how long a terminal that others keep open must be silent after
	// its program's end, to have given all of the program's output.
	quiet = 100 * time.Millisecond

	// maxDrain is how long it may be read for that silence, but for the time
	// that its output waits for a client. The program's own is a few KiB.
	maxDrain = 2 * time.Second

	// killGrace is what a program has between being hung up and being killed.
	killGrace = 5 * time.Second
)

// programLoop reads the program's output until its end, and then says how it
// ended.
func (h *Holder) programLoop() {
	p := h.program
	var readers sync.WaitGroup
	if p.Terminal() {
		readers.Go(func() { h.readOutput(p.Stdout(), session.Stdout) })
	} else {
		readers.Go(func() {
			h.readOutput(p.Stdout(), session.Stdout)
			h.append(session.EOF, []byte{byte(session.StreamStdout)})
		})
		readers.Go(func() {
			h.readOutput(p.Stderr(), session.Stderr)
			h.append(session.EOF, []byte{byte(session.StreamStderr)})
		})
	}
	drained := make(chan struct{})
	h.wg.Go(func() {
		readers.Wait()
		close(drained)
	})
	status := p.Wait()
	if p.Terminal() {
		h.awaitQuiet(drained)
	} else {
		<-drained
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	h.exit = h.appendLocked(session.Exit, []byte{status})
	h.exited, h.status, h.since = true, status, time.Now()
	h.log.Info("program ended", "status", status)
	h.settleLocked()
}

// awaitQuiet waits until a terminal's output has ended, or for a moment of
// silence, but not for ever: processes left in the background may keep it open.
func (h *Holder) awaitQuiet(drained <-chan struct{}) {
	from := time.Now()
	for rest := maxDrain; rest > 0; {
		h.mu.Lock()
		waits := h.reading.waits
		if waits {
			from = time.Now()
		} else if h.reading.last.After(from) {
			from = h.reading.last
		}
		h.mu.Unlock()
		left := quiet - time.Since(from)
		if left <= 0 {
			return
		}
		select {
		case <-drained:
			return
		case <-time.After(left):
		}
		if !waits {
			rest -= left
		}
	}
}

// readOutput copies a stream to the log until it ends. It reads no more than can
// be sent: what is left in a terminal's buffer is dropped when the program is
// interrupted, and what follows is there sooner.
func (h *Holder) readOutput(r io.Reader, t buffer.Type) {
	buf := make([]byte, readSize)
	for {
		h.mu.Lock()
		h.reading.waits = true
		size := h.awaitRoomLocked()
		h.reading.waits = false
		h.mu.Unlock()
		n, err := r.Read(buf[:size])
		if n > 0 {
			h.mu.Lock()
			h.reading.waits = true
			h.appendLocked(t, buf[:n])
			h.reading.waits, h.reading.last = false, time.Now()
			h.mu.Unlock()
		}
		if err != nil {
			return // io.EOF, EIO when a terminal has no program, or closed by us
		}
	}
}

// awaitRoomLocked waits until output may be read, and returns how much: little on
// a slow path, where a frame takes its time and nothing overtakes it.
func (h *Holder) awaitRoomLocked() int {
	if !h.spec.PTY {
		return readSize
	}
	for h.mustWaitLocked(1) {
		h.changed.Wait()
	}
	if h.writer == nil {
		return readSize
	}
	return min(max(h.writer.peer.Appetite(time.Now())/8, minFrame), readSize)
}

func (h *Holder) append(t buffer.Type, payload []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.appendLocked(t, payload)
}

// inputLoop gives the writer's input to the program. It may have to wait for
// the program; the writer may be another when it goes on.
func (h *Holder) inputLoop() {
	for {
		h.mu.Lock()
		for !h.ending && (h.writer == nil || len(h.writer.queue) == 0) {
			h.changed.Wait()
		}
		if h.ending {
			h.mu.Unlock()
			return
		}
		a := h.writer
		batch := a.queue
		a.queue = nil
		h.mu.Unlock()
		for i, d := range batch {
			h.handleInput(d)
			h.mu.Lock()
			if h.writer != a {
				h.log.Info("input of a displaced client dropped", "frames", len(batch)-i-1)
				h.mu.Unlock()
				break
			}
			if d.Lost == nil && d.Type == session.Skip {
				h.skipLocked(a)
			}
			a.peer.Consume(time.Now(), d)
			a.pump.Wake()
			h.mu.Unlock()
		}
	}
}

// handleInput gives one frame to the program. It blocks while the program does
// not read. What a client can say at any time is logged for debugging only: it
// could fill the log.
func (h *Holder) handleInput(d session.Delivered) {
	p := h.program
	switch {
	case d.Lost != nil:
		h.log.Debug("input was lost", "frames", d.Lost.To-d.Lost.From+1, "bytes", d.Lost.Bytes)
	case d.Type == session.Stdin:
		_, err := p.Stdin().Write(d.Payload)
		if errors.Is(err, syscall.EPIPE) {
			p.Stdin().Close()
			h.append(session.Closed, []byte{byte(session.StreamStdin)})
		}
	case d.Type == session.EOF:
		if stream, err := session.ParseStream(d.Payload); err != nil || stream != session.StreamStdin {
			return
		}
		if p.Terminal() {
			p.Stdin().Write([]byte{endOfFile})
		} else {
			p.Stdin().Close()
		}
	}
}

// endOfFile is what ends the input of a terminal in its usual mode, ^D.
const endOfFile = 4

// closeOutput passes on that nobody reads one of the program's streams: its
// next write to it fails.
func (h *Holder) closeOutput(payload []byte) {
	stream, err := session.ParseStream(payload)
	if err != nil || h.program.Terminal() {
		return
	}
	switch stream {
	case session.StreamStdout:
		h.program.Stdout().Close()
	case session.StreamStderr:
		h.program.Stderr().Close()
	}
}

// signals are those that a client may send, by their names in RFC 4254, 6.10.
var signals = map[string]syscall.Signal{
	"ALRM": syscall.SIGALRM,
	"HUP":  syscall.SIGHUP,
	"INT":  syscall.SIGINT,
	"KILL": syscall.SIGKILL,
	"QUIT": syscall.SIGQUIT,
	"TERM": syscall.SIGTERM,
	"USR1": syscall.SIGUSR1,
	"USR2": syscall.SIGUSR2,
}

// handleUrgent does what must not wait for the program to read its input.
func (h *Holder) handleUrgent(f buffer.Frame) {
	switch f.Type {
	case session.Resize:
		if size, err := session.ParseSize(f.Payload); err == nil {
			h.program.Resize(size)
		}
	case session.Signal:
		sig, ok := signals[string(f.Payload)]
		switch {
		case !ok:
			h.log.Debug("unknown signal", "name", string(f.Payload[:min(len(f.Payload), 16)]))
		case sig == syscall.SIGHUP:
			h.hangup()
		default:
			h.program.Signal(sig)
		}
	case session.Closed:
		h.closeOutput(f.Payload)
	}
}

// hangup ends the program, first in the way that a closed terminal does.
func (h *Holder) hangup() {
	h.program.Hangup(syscall.SIGHUP)
	time.AfterFunc(killGrace, func() { h.program.Hangup(syscall.SIGKILL) })
}

// maxAgeWait is how often a session's age is looked at at least.
const maxAgeWait = time.Minute

// watchAge hangs the program up, or ends the session, when nobody has been there
// for too long.
func (h *Holder) watchAge() {
	for {
		wait := maxAgeWait
		h.mu.Lock()
		if left, why := h.expiryLocked(); left > 0 {
			wait = min(wait, left)
		} else if h.exited {
			h.finishLocked(why)
		} else {
			h.log.Info("hanging up", "reason", why)
			h.expired = true
			h.since = time.Now() // so that it is not hung up at each look
			h.hangup()
			h.changed.Broadcast()
		}
		h.mu.Unlock()
		select {
		case <-h.end:
			return
		case <-time.After(wait):
		}
	}
}

// expiryLocked returns how long the session may stay as it is, and why no longer.
func (h *Holder) expiryLocked() (time.Duration, string) {
	const forever = 1 << 62
	if h.presentLocked() {
		return forever, ""
	}
	age := time.Since(h.since)
	switch {
	case h.exited:
		return h.spec.ExitedTTL - age, "nobody came to see its end"
	case !h.spec.PTY:
		return h.spec.PipeTTL - age, "its client is gone"
	case h.spec.DetachedTTL > 0:
		return h.spec.DetachedTTL - age, "nobody was there for too long"
	}
	return forever, ""
}
