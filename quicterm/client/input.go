package client

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// errOver is the error of writing to a session that is over.
var errOver = fmt.Errorf("write to a session that is over: %w", io.ErrClosedPipe)

// Write sends input to the program. It blocks while too much input waits for the server, and
// returns an error when the session is over.
func (s *Session) Write(b []byte) (int, error) {
	written := 0
	for {
		n := min(len(b)-written, wire.MaxInput)
		if err := s.send(wire.Stdin, b[written:written+n]); err != nil {
			return written, err
		}
		if written += n; written == len(b) {
			return written, nil
		}
	}
}

// TryWrite puts as much of b into the log for the program as there is room for, without blocking.
// It returns how many bytes that is and the last frame of input that has bytes of b, or 0, and an
// error when the session is over. The caller calls Flush, which sends them.
func (s *Session) TryWrite(b []byte) (written int, frame uint64, err error) {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.over {
		return 0, 0, errOver
	}
	for written < len(b) {
		n := min(len(b)-written, wire.MaxInput, s.ring.Room())
		if n <= 0 {
			break
		}
		frame = s.ring.Append(wire.Stdin, b[written:written+n])
		written += n
	}
	if written > 0 {
		s.endpoint.Appended(time.Now())
	}
	return written, frame, nil
}

// Flush sends what TryWrite has put into the log.
func (s *Session) Flush() {
	s.gate.Lock()
	defer s.gate.Unlock()
	if !s.over {
		s.appendedLocked()
	}
}

// AskHint asks the server for a hint (see [Streams]), at most twice in a round trip.
func (s *Session) AskHint() {
	s.gate.Lock()
	defer s.gate.Unlock()
	now := time.Now()
	if now.Sub(s.askedAt) < max(s.endpoint.BestRTT()/2, minHintInterval) {
		return
	}
	s.askedAt = now
	s.endpoint.AskAck()
	s.driver.Wake()
}

// Enter sends what a program types; [Streams] has Entered called with what comes of it. It returns the frame of input
// that has the entry, and blocks as Write does.
func (s *Session) Enter(e *wire.Entry) (frame uint64, err error) {
	if n := len(e.Text) + len(e.Keys); n > wire.MaxEntry {
		return 0, fmt.Errorf("%d bytes to type, more than %d", n, wire.MaxEntry)
	}
	return s.append(wire.EntryFrame, e.Append(nil))
}

// CloseWrite ends the input. It blocks as Write does.
func (s *Session) CloseWrite() error {
	return s.send(wire.EOF, []byte{byte(wire.StreamStdin)})
}

// Resize tells the program's terminal the size of the user's. It blocks as Write does.
func (s *Session) Resize(size wire.Size) error {
	return s.send(wire.Resize, size.Append(nil))
}

// TakeSize gives the session the size of the user's terminal, and lets that terminal alone change it from now
// on. It blocks as Write does.
func (s *Session) TakeSize(size wire.Size) error {
	return s.send(wire.Take, size.Append(nil))
}

// Signal sends a signal to the program, given by its name without SIG. HUP ends the session. It blocks as Write does.
func (s *Session) Signal(name string) error { return s.send(wire.Signal, []byte(name)) }

// Skip asks the server to leave out the output that it has not sent, except the last lines, as soon as the program
// has the input before it. Without a terminal it does nothing. It blocks as Write does.
func (s *Session) Skip() error { return s.send(wire.Skip, nil) }

func (s *Session) send(t buffer.Type, payload []byte) error {
	_, err := s.append(t, payload)
	return err
}

func (s *Session) append(t buffer.Type, payload []byte) (frame uint64, err error) {
	s.gate.Lock()
	defer s.gate.Unlock()
	room := func() bool { return s.over || s.ring.Room() >= max(len(payload), 1) }
	_ = s.waitLocked(context.Background(), room)
	if s.over {
		return 0, errOver
	}
	frame = s.ring.Append(t, payload)
	s.appendedLocked()
	return frame, nil
}

// appendedLocked sends frames that were appended to the ring.
func (s *Session) appendedLocked() {
	now := time.Now()
	s.endpoint.Appended(now)
	s.driver.Wake()
	s.alarm.frames(now, s.unackedLocked(), true)
}
