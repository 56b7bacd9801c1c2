package client

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxWrite is how many bytes of output are written at once.
const maxWrite = 64 << 10

// Offset returns the offset in the log of the output behind what the session has written or told, from which another
// attach continues (see [wire.Replay]); before Run, the offset at which the output begins. It is for the callbacks of
// [Streams] that Run's goroutine calls, and for the time before and after Run.
func (s *Session) Offset() uint64 { return s.offset + s.attached.Trim }

// deliver writes the output until the session is over.
func (s *Session) deliver() {
	if s.attached.Live <= s.attached.First {
		s.replayed()
	}
	for {
		s.gate.Lock()
		_ = s.gate.Wait(context.Background(), func() bool { return s.over || s.endpoint.Pending() > 0 || s.hints.due() })
		if s.over {
			s.gate.Unlock()
			return
		}
		batch := s.endpoint.Take(maxWrite)
		aged := s.endpoint.Aged()
		hint, hinted := s.nextHintLocked()
		s.gate.Unlock()
		if hinted {
			s.streams.Hinted(hint)
		}
		if len(batch) > 0 {
			s.replayUntil(batch[0], aged)
		}
		for len(batch) > 0 {
			n := s.write(batch)
			last := batch[n-1]
			s.gate.Lock()
			s.endpoint.Consume(time.Now(), batch[:n]...)
			s.driver.Wake()
			if last.Gap == nil && last.Type == wire.Exit {
				s.endpoint.AckEnd(time.Now()) // the session ends when the holder knows
				s.driver.Wake()
				s.endLocked(nil)
			}
			s.hints.wrote(last.After() - 1)
			hint, hinted := s.nextHintLocked()
			s.gate.Unlock()
			if hinted {
				s.streams.Hinted(hint)
			}
			if s.attached.Live > 0 && last.After() >= s.attached.Live {
				s.replayed()
			}
			batch = batch[n:]
		}
	}
}

// nextHintLocked returns the hint that is due, if there is one, and records where the next is.
func (s *Session) nextHintLocked() (hint wire.Hint, ok bool) {
	hint, ok = s.hints.pop()
	s.hintAt = s.hints.next()
	return hint, ok
}

// replayed says, once, that everything that follows is live.
func (s *Session) replayed() {
	s.attached.Live = 0
	if s.streams.Replayed != nil {
		s.streams.Replayed()
	}
}

// replayUntil says that the output from a frame on is old, up to another one.
func (s *Session) replayUntil(from session.Delivered, aged uint64) {
	if aged <= from.Seq || aged <= s.attached.Live {
		return
	}
	if s.attached.Live == 0 && s.streams.Replaying != nil {
		s.streams.Replaying()
	}
	s.attached.Live = aged
}

// write handles the first frames of a batch, and returns how many. Output for the same stream is written together.
func (s *Session) write(batch []session.Delivered) int {
	d := batch[0]
	begins := s.begins
	s.begins = false
	switch {
	case d.Gap != nil:
		s.attached.Trim = 0
		s.offset += d.Gap.Bytes
		s.showGap(*d.Gap, begins)
		return 1
	case d.Type == wire.Stdout || d.Type == wire.Stderr:
		return s.writeOutput(batch)
	}
	s.offset += uint64(len(d.Payload))
	switch d.Type {
	case wire.EOF:
		s.closeOutput(d.Payload)
	case wire.Closed:
		if s.streams.InputClosed != nil {
			s.streams.InputClosed()
		}
	case wire.Resize:
		if sizing, _, err := wire.ParseSizing(d.Payload); err == nil {
			s.resized(sizing)
		}
	case wire.EnteredFrame:
		entered, err := wire.ParseEntered(d.Payload)
		if err == nil && entered.Client == s.attached.Number && s.streams.Entered != nil {
			s.streams.Entered(entered)
		}
	case wire.TypistFrame:
		typist, err := wire.ParseTypist(d.Payload)
		if err == nil && typist.Client != s.attached.Number && s.streams.Typist != nil {
			s.streams.Typist(typist)
		}
	case wire.Happened:
		if e, err := wire.ParseEvent(d.Payload); err == nil && s.streams.Happened != nil {
			s.streams.Happened(d.Seq, e)
		}
	case wire.Exit:
		s.exit = wire.ParseExitStatus(d.Payload)
	}
	return 1
}

func (s *Session) resized(sizing wire.Sizing) {
	s.sizing = sizing
	if s.streams.Resized != nil {
		s.streams.Resized(sizing)
	}
}

// showGap handles a gap. If it has a snapshot, nothing is lost if that begins the output, or if the screen has
// a size now that another client gave it.
func (s *Session) showGap(g session.Gap, begins bool) {
	snapshot, err := wire.ParseSnapshot(g.Snapshot)
	if g.Snapshot = snapshot.Screen; err == nil {
		before := cmp.Or(s.sizing, s.Sizing())
		own := before.Owner == s.attached.Number && snapshot.Sizing.Owner == s.attached.Number
		begins = begins || !own && snapshot.Sizing.Size != before.Size
		s.resized(snapshot.Sizing)
	}
	if begins && g.Snapshot != nil {
		if s.streams.Began != nil {
			s.streams.Began(g.Snapshot)
		}
		return
	}
	if s.streams.Lost != nil {
		s.streams.Lost(Gap(g))
	}
	if !s.attached.PTY && !s.attached.Role.ReadOnly() {
		s.end(ErrLost)
	}
}

// writeOutput writes the first frames of a batch that are for the same stream.
func (s *Session) writeOutput(batch []session.Delivered) int {
	t := batch[0].Type
	b := s.trim(batch[0].Payload)
	n := 1
	for n < len(batch) && batch[n].Gap == nil && batch[n].Type == t && batch[n-1].Seq != s.hintAt &&
		batch[n].Seq != s.attached.Live && len(b)+len(batch[n].Payload) <= maxWrite {
		if n == 1 {
			s.merged = append(s.merged[:0], b...)
		}
		s.merged = append(s.merged, s.trim(batch[n].Payload)...)
		b = s.merged
		n++
	}
	w, stream := s.streams.Stdout, wire.StreamStdout
	if t == wire.Stderr {
		w, stream = s.streams.Stderr, wire.StreamStderr
	}
	if len(b) == 0 || w == nil {
		return n
	}
	if _, err := w.Write(b); err != nil {
		s.keepWriteErr(err)
		s.dropOutput(stream)
		s.gate.Lock()
		s.endpoint.Notify(wire.NoticeReaderGone, string([]byte{byte(stream)}))
		s.driver.Wake()
		s.gate.Unlock()
	}
	return n
}

// trim leaves out the first bytes, as the server has asked for at the attach.
func (s *Session) trim(b []byte) []byte {
	s.offset += uint64(len(b))
	n := min(uint64(len(b)), s.attached.Trim)
	s.attached.Trim -= n
	return b[n:]
}

func (s *Session) dropOutput(stream wire.Stream) {
	if stream == wire.StreamStderr {
		s.streams.Stderr = nil
	} else {
		s.streams.Stdout = nil
	}
}

// closeOutput closes the writer of a stream that the program has closed.
func (s *Session) closeOutput(payload []byte) {
	stream, err := wire.ParseStream(payload)
	if err != nil || stream == wire.StreamStdin {
		return
	}
	w := s.streams.Stdout
	if stream == wire.StreamStderr {
		w = s.streams.Stderr
	}
	if c, ok := w.(io.Closer); ok {
		s.keepWriteErr(c.Close())
	}
	s.dropOutput(stream)
}

// keepWriteErr keeps the first error of writing output. A reader that was closed is none.
func (s *Session) keepWriteErr(err error) {
	if err == nil || s.writeErr != nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // the path is a made up one
	}
	s.writeErr = err
}
