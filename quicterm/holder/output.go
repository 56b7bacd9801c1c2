//go:build linux || darwin

package holder

import (
	"io"
	"sync"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/holder/events"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxRead is the most output of a terminal that is read at once, and maxPipeRead that of a pipe:
	// a whole number of frames of that size fills a segment of the ring.
	maxRead     = 16<<10 - buffer.Overhead
	maxPipeRead = 64<<10 - buffer.Overhead

	// maxOwn is more than the kernel keeps of a terminal's output: what is read after that
	// since the program's end is not the program's.
	maxOwn = 256 << 10
)

// reading is what awaitQuiet needs to know of readOutput.
type reading struct {
	blocked bool // output waits for room in the log
	last    time.Time
	bytes   uint64 // appended
}

// programLoop reads the program's output until its end, and appends its exit.
func (h *Holder) programLoop() {
	p := h.program
	var readers sync.WaitGroup
	if h.launch.PTY {
		readers.Go(func() { h.readOutput(p.Stdout(), wire.Stdout) })
	} else {
		readers.Go(func() {
			h.readOutput(p.Stdout(), wire.Stdout)
			h.append(wire.EOF, []byte{byte(wire.StreamStdout)})
		})
		readers.Go(func() {
			h.readOutput(p.Stderr(), wire.Stderr)
			h.append(wire.EOF, []byte{byte(wire.StreamStderr)})
		})
	}
	drained := make(chan struct{})
	h.running.Go(func() {
		readers.Wait()
		close(drained)
	})
	status, sig := p.Wait()
	at := time.Now()
	h.gate.Lock()
	h.life.reaped = true
	h.gate.Changed()
	h.gate.Unlock()
	if h.launch.PTY {
		h.awaitQuiet(drained)
	} else {
		<-drained
	}
	h.gate.Lock()
	defer h.gate.Unlock()
	h.exitedLocked(status, sig, at)
}

// readOutput copies a stream to the log until it ends. It reads no more than can be sent now: what is left in a
// terminal's buffer is dropped when the program is interrupted, and the output after that arrives sooner.
func (h *Holder) readOutput(r io.Reader, t buffer.Type) {
	size := maxPipeRead
	if h.launch.PTY {
		size = maxRead
	}
	buf := make([]byte, size)
	for {
		n, err := r.Read(buf[:h.awaitReadSize()])
		if n > 0 {
			h.gate.Lock()
			h.reading.blocked = true
			h.appendLocked(t, buf[:n])
			now := time.Now()
			h.reading = reading{last: now, bytes: h.reading.bytes + uint64(n)}
			h.lookForOwnerLocked(now)
			for _, a := range h.clients.all {
				h.skipFloodLocked(a)
			}
			h.hints.progress.changed(now)
			h.hints.lookLaterLocked(now)
			if h.launch.PTY {
				h.hints.stirredLocked(now, h.events.still.Printed)
				if events.TellsQuickly(buf[:n]) {
					h.emulator.hurry()
				}
			}
			h.gate.Unlock()
		}
		if err != nil {
			return // io.EOF, EIO from a terminal without a program, or closed by us
		}
	}
}

// awaitReadSize blocks until output may be read, and returns how much.
func (h *Holder) awaitReadSize() int {
	h.gate.Lock()
	defer h.gate.Unlock()
	if !h.launch.PTY { // what is read may wait: a pipe's output is never dropped
		return h.clients.readSize(time.Now())
	}
	h.reading.blocked = true
	h.awaitRoomLocked(1)
	h.reading.blocked = false
	return h.clients.readSize(time.Now())
}

// awaitQuiet blocks until all output of the program that has ended is in the log, however long that takes, and then
// until the terminal is silent for quietTime, but not forever: processes in the background may keep it open.
func (h *Holder) awaitQuiet(drained <-chan struct{}) {
	from := time.Now()
	var start uint64 // of reading.bytes
	complete := false
	for waited, first := time.Duration(0), true; ; first = false {
		h.gate.Lock()
		r := h.reading
		h.gate.Unlock()
		quiet := h.program.Drained(r.bytes)
		if first {
			start = r.bytes
		}
		if r.blocked {
			from = time.Now()
		} else if r.last.After(from) {
			from = r.last
		}
		complete = complete || quiet || r.bytes-start >= maxOwn
		silent := quiet && time.Since(from) >= quietTime
		if complete && (silent || waited >= maxDrain) {
			return
		}
		select {
		case <-drained:
			return
		case <-time.After(drainPoll):
		}
		if !r.blocked {
			waited += drainPoll
		}
	}
}
