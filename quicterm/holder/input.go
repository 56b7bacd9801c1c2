//go:build linux || darwin

package holder

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/holder/program"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// endOfFile ends the input of a terminal in its usual mode: ^D.
const endOfFile = 4

// inputLoop gives the writers' input to the program. The program may make it wait; after
// that another client may be the writer.
func (h *Holder) inputLoop() {
	h.gate.Lock()
	defer h.gate.Unlock()
	for {
		var w *attachment
		h.gate.Wait(context.Background(), func() bool {
			w = h.clients.nextInput()
			return h.life.over || w != nil
		})
		if h.life.over {
			return
		}
		d := w.endpoint.Take(0)[0]
		h.clients.taken++
		w.takenAt = h.clients.taken
		output := h.ring.Next()
		h.hints.progress.giveLocked()
		h.gate.Unlock()
		h.give(w, d)
		h.gate.Lock()
		h.hints.progress.giving = false
		if !w.role.writes() {
			continue
		}
		if d.Gap == nil && d.Type == wire.Skip {
			h.skipLocked(w)
		}
		now := time.Now()
		h.hints.gaveLocked(now, w, d, output)
		w.endpoint.Consume(now, d)
		w.driver.Wake()
	}
}

// give gives one frame of a writer to the program. It blocks while the program does not read. What a
// client can send at any rate is logged at debug level only.
func (h *Holder) give(w *attachment, d session.Delivered) {
	p := h.program
	switch {
	case d.Gap != nil:
		h.log.Debug("input was lost", "frames", d.Gap.To-d.Gap.From+1, "bytes", d.Gap.Bytes)
	case d.Type == wire.Secret && !h.hidesInput():
		h.append(wire.Refused, wire.Refusal{Client: w.number, Frame: d.Seq}.Append(nil))
	case d.Type == wire.Stdin || d.Type == wire.Secret:
		_, err := p.Stdin().Write(d.Payload)
		if errors.Is(err, syscall.EPIPE) {
			p.Stdin().Close()
			h.append(wire.Closed, []byte{byte(wire.StreamStdin)})
		}
	case d.Type == wire.EOF:
		if stream, err := wire.ParseStream(d.Payload); err != nil || stream != wire.StreamStdin {
			return
		}
		if h.launch.PTY {
			p.Stdin().Write([]byte{endOfFile})
		} else {
			p.Stdin().Close()
		}
	}
}

// hidesInput reports whether the program reads a line that its terminal does not show.
func (h *Holder) hidesInput() bool {
	flags, _, ok := h.program.Modes(time.Now())
	return ok && flags.Secret()
}

// handleUrgentLocked handles a frame that must not wait until the program reads the
// input before it.
func (h *Holder) handleUrgentLocked(a *attachment, f buffer.Frame) {
	switch f.Type {
	case wire.Resize:
		if size, err := wire.ParseSize(f.Payload); err == nil {
			a.size = size
			h.fitTerminalLocked()
		}
	case wire.Take:
		if size, err := wire.ParseSize(f.Payload); err == nil && a.role.writes() {
			a.size = size
			h.ownership.take(a.number)
			h.fitTerminalLocked()
		}
	case wire.Signal:
		sig, ok := program.Signals[string(f.Payload)]
		switch {
		case !ok:
			h.log.Debug("unknown signal", "signal", string(f.Payload[:min(len(f.Payload), 16)]))
		case sig == syscall.SIGHUP:
			h.hangupLocked("")
		default:
			h.life.requested[sig] = true
			h.program.Signal(sig)
		}
	case wire.Closed:
		h.closeOutputLocked(f.Payload)
	}
}

// closeOutputLocked closes one of the program's output streams, which the client does
// not read any more: the program's next write to it fails.
func (h *Holder) closeOutputLocked(payload []byte) {
	stream, err := wire.ParseStream(payload)
	if err != nil || h.launch.PTY {
		return
	}
	h.life.requested[syscall.SIGPIPE] = true
	switch stream {
	case wire.StreamStdout:
		h.program.Stdout().Close()
	case wire.StreamStderr:
		h.program.Stderr().Close()
	}
}
