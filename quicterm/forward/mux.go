// Package forward moves the connections of a side pipe: a pipe whose program is `qtd forward`. It has the server's end,
// and what both ends share: the streams, one for each connection, and how one is joined to the connection. Section 5.10
// of SPEC.md says which messages are in front of a stream.
package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"github.com/libp2p/go-yamux/v5"
)

const (
	// maxStreams bounds the connections that are open at a time, for each end that opens some.
	maxStreams = 4096

	// maxUnread bounds the bytes of all streams that came by the pipe and were not read. An end that has as many reads
	// the pipe no more, until they are read, or streams that are not read end (stallTime). maxWindow bounds those of one
	// stream: more than the pipe has under way, for the window is given back by halves. Windows grow while less than
	// maxGrowing bytes of all streams were not read: those that nobody reads leave some for the others.
	maxUnread  = 64 << 20
	maxWindow  = 16 << 20
	maxGrowing = maxUnread / 4

	// maxFrame bounds what a stream sends at once, so that the others get their turns.
	maxFrame = 32 << 10

	// never is a time limit of yamux that must not end a session: an outage may last.
	never = 10 * 365 * 24 * time.Hour

	// rttInterval is how often a session measures its round trip, by which windows grow.
	rttInterval = 15 * time.Minute
)

// A Session is an end of a side pipe. It is safe for concurrent use.
type Session struct {
	mux     *yamux.Session
	meter   *meter
	opening sync.Mutex
}

// A Stream is a connection of a session.
type Stream struct {
	*yamux.Stream
	meter *meter

	// Guarded by meter.mu.
	conn   Conn // that takes its bytes; nil if there is none yet
	window int  // how much of it this end takes
}

// NewSession returns an end of a side pipe that reads and writes in order and without loss. Close closes both. One of
// the ends is the client.
func NewSession(r io.ReadCloser, w io.WriteCloser, client bool) (*Session, error) {
	m := newMeter(r, client)
	config := &yamux.Config{
		AcceptBacklog: 256, PingBacklog: 8, MeasureRTTInterval: rttInterval, ConnectionWriteTimeout: never,
		MaxIncomingStreams: maxStreams, InitialStreamWindowSize: firstWindow, MaxStreamWindowSize: maxWindow,
		LogOutput: io.Discard, ReadBufSize: maxFrame, MaxMessageSize: maxFrame,
	}
	make := yamux.Server
	if client {
		make = yamux.Client
	}
	mux, err := make(&conn{m, r, w}, config, func() (yamux.MemoryManager, error) { return windows{m}, nil })
	if err != nil {
		return nil, err
	}
	return &Session{mux: mux, meter: m}, nil
}

// Open opens a stream. It does not wait for the other end.
func (s *Session) Open(ctx context.Context) (*Stream, error) {
	if s.mux.NumStreams() >= maxStreams {
		return nil, fmt.Errorf("there are %d connections already", maxStreams)
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	stream, err := s.mux.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	return s.meter.open(stream), nil
}

// Accept waits for a stream that the other end opens.
func (s *Session) Accept() (*Stream, error) {
	stream, err := s.mux.AcceptStream()
	if err != nil {
		return nil, err
	}
	return s.meter.accept(stream), nil
}

// Unused reports whether there is no stream.
func (s *Session) Unused() bool { return s.mux.NumStreams() == 0 }

// Ended is closed when the session has ended.
func (s *Session) Ended() <-chan struct{} { return s.mux.CloseChan() }

// Close ends the session, and all of its streams.
func (s *Session) Close() { s.mux.Close() }

// Read implements [io.Reader].
func (s *Stream) Read(b []byte) (int, error) {
	n, err := s.Stream.Read(b)
	s.meter.read(s.StreamID(), n)
	return n, err
}

// Reset ends the stream, which the other end takes for an error unless both have ended what they send.
func (s *Stream) Reset() {
	s.Stream.Reset()
	s.meter.forget(s.StreamID())
}

// Finish ends what this end sends, and the stream when the other end has taken that and ended, too. It blocks until then.
func (s *Stream) Finish() {
	s.CloseWrite()
	io.Copy(io.Discard, s)
	s.Reset()
}

// A conn is the pipe in the form that yamux takes.
type conn struct {
	*meter
	r io.Closer
	w io.WriteCloser
}

// Write is called with a frame at a time.
func (c *conn) Write(b []byte) (int, error) { return c.w.Write(c.meter.sends(b)) }

func (c *conn) Close() error {
	c.meter.end()
	c.w.Close()
	return c.r.Close()
}

func (*conn) LocalAddr() net.Addr              { return nil }
func (*conn) RemoteAddr() net.Addr             { return nil }
func (*conn) SetDeadline(time.Time) error      { return nil }
func (*conn) SetReadDeadline(time.Time) error  { return nil }
func (*conn) SetWriteDeadline(time.Time) error { return nil }

// firstWindow is the window with which each stream of yamux begins.
const firstWindow = 256 << 10

// windows says how much the windows of streams may grow.
type windows struct{ *meter }

// ReserveMemory implements [yamux.MemoryManager]. A window that has grown stays so, also of a stream that is idle: what
// was not read counts.
func (w windows) ReserveMemory(_ int, priority uint8) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if priority != math.MaxUint8 && w.total > maxGrowing { // the first window has that priority
		return errors.New("too much was not read")
	}
	return nil
}

// ReleaseMemory implements [yamux.MemoryManager].
func (windows) ReleaseMemory(int) {}

// Done implements [yamux.MemoryManager].
func (windows) Done() {}
