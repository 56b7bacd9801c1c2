//go:build linux || darwin

package holder

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/holder/program"
	"github.com/quicterm/quicterm/quicterm/holder/typing"
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
			return h.life.over || w != nil || h.hints.progress.fresh || h.answers != nil
		})
		if h.life.over {
			return
		}
		if h.hints.progress.fresh {
			h.typeLocked()
			continue
		}
		if answers := h.answers; answers != nil {
			h.answers = nil
			h.giveLocked(func() { h.program.Stdin().Write(answers) })
			continue
		}
		d := w.endpoint.Take(0)[0]
		h.clients.taken++
		w.takenAt = h.clients.taken
		h.calls.typedLocked(w, d)
		if d.Gap == nil && d.Type == wire.EntryFrame && h.enterLocked(w, d) {
			continue
		}
		typist := wire.Typist{Client: w.number, Name: w.client}
		if d.Gap == nil && d.Type == wire.Stdin && h.typing.Typed(typist) {
			h.logLocked(wire.TypistFrame, typist.Append(nil))
		}
		output := h.ring.Next()
		h.giveLocked(func() { h.give(d) })
		if w.role.writes() {
			h.gaveLocked(w, d, output)
		}
		h.typedLocked(d.Payload)
	}
}

// typedLocked records what was typed, after which the program may wait for a person again.
func (h *Holder) typedLocked(b []byte) {
	if h.launch.PTY && typing.Enters(b) {
		h.hints.stirredLocked(time.Now(), h.events.still.Entered)
	}
}

// giveLocked calls f, which gives input to the program, without the gate.
func (h *Holder) giveLocked(f func()) {
	h.hints.progress.giveLocked(time.Now())
	h.gate.Unlock()
	f()
	h.gate.Lock()
	h.hints.progress.giving = false
}

// gaveLocked records that a frame of a writer was handled. The output had ended before a frame when it was given.
func (h *Holder) gaveLocked(w *attachment, d session.Delivered, output uint64) {
	if d.Gap == nil && d.Type == wire.Skip {
		h.skipLocked(w)
	}
	now := time.Now()
	h.hints.gaveLocked(now, w, d, output)
	w.endpoint.Consume(now, d)
	w.driver.Wake()
}

// give gives one frame of a writer to the program. It blocks while the program does not read. What a
// client can send at any rate is logged at debug level only.
func (h *Holder) give(d session.Delivered) {
	p := h.program
	switch {
	case d.Gap != nil:
		h.log.Debug("input was lost", "frames", d.Gap.To-d.Gap.From+1, "bytes", d.Gap.Bytes)
	case d.Type == wire.Stdin:
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

// enterLocked takes a frame with what a program types, which is typed when its turn has come. It returns false if it
// makes no sense.
func (h *Holder) enterLocked(w *attachment, d session.Delivered) bool {
	e, err := wire.ParseEntry(d.Payload)
	if err != nil || !w.isProgram() {
		return false
	}
	w.entry = d
	h.typing.Add(time.Now(), &typing.Item{Client: wire.Typist{Client: w.number, Name: w.client}, Frame: d.Seq, Entry: e})
	h.hints.followSoonLocked(w)
	return true
}

// typeLocked does the next step of what programs type, after a look at the terminal.
func (h *Holder) typeLocked() {
	p := &h.hints.progress
	p.fresh = false
	events := p.events
	step, ok := h.typing.Next(time.Now(), typing.Look{
		Terminal: h.hints.modes.flags, Context: h.hints.modes.context,
		Prompt: h.hints.promptLocked(), Reading: p.reads, Taken: !p.queued,
		Printed: h.reading.last, Offset: h.ring.Offset(h.ring.Next()),
		Connected: func(client uint64) bool {
			a := h.clients.numbered(client)
			return a != nil && a.connected()
		},
		Screen: func() (s typing.Screen, ok bool) {
			if !h.emulator.awaitDrawnLocked() || p.events != events || !h.hints.lookLocked(time.Now()) {
				return s, false
			}
			s.Marks, _ = h.emulator.screen.InputZone()
			s.Pastes, s.Terminal = h.emulator.screen.BracketedPaste(), h.hints.modes.flags
			return s, true
		},
	})
	if !ok {
		return
	}
	if step.Entered != nil {
		h.logLocked(wire.EnteredFrame, step.Entered.Append(nil))
	}
	output := h.ring.Next()
	if len(step.Write) > 0 {
		h.giveLocked(func() { h.program.Stdin().Write(step.Write) })
		h.typedLocked(step.Write)
	}
	for w := range h.clients.writers() {
		if i := step.Handled; i != nil && w.number == i.Client.Client && w.entry.Seq == i.Frame {
			d := w.entry
			w.entry = session.Delivered{}
			h.gaveLocked(w, d, output)
		}
		h.hints.followSoonLocked(w)
	}
}

// handleUrgentLocked handles a frame that must not wait until the program reads the
// input before it.
func (h *Holder) handleUrgentLocked(a *attachment, f buffer.Frame) {
	if a.guest {
		return
	}
	switch f.Type {
	case wire.Resize:
		if size, err := wire.ParseSize(f.Payload); err == nil {
			a.size = size
			h.fitTerminalLocked()
		}
	case wire.Take:
		if size, err := wire.ParseSize(f.Payload); err == nil && a.role.writes() {
			a.size = size
			h.ownership.Take(a.number)
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
