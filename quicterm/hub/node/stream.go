package node

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/quicterm/hub"
)

const (
	// maxUnread bounds the bytes that all streams of a connection may have for their readers: 64 streams with whole windows,
	// or 1024 that have just begun.
	maxUnread = 64 << 20

	// keepAlive is how often each end says on a stream that it is there: 60 bytes. silence is how long it may not.
	keepAlive = 30 * time.Second
	silence   = 100 * time.Second
)

var (
	errReset   = errors.New("the other end of the relayed stream has ended it")
	errSilence = errors.New("the other end of the relayed stream is silent")
)

// A pool is the memory of the streams of a connection.
type pool struct{ used atomic.Int64 }

// take takes bytes, if there are so many.
func (p *pool) take(bytes uint64) bool {
	if p.used.Add(int64(bytes)) > maxUnread {
		p.used.Add(-int64(bytes))
		return false
	}
	return true
}

func (p *pool) give(bytes uint64) { p.used.Add(-int64(bytes)) }

// A stream is an end of a relayed stream: a net.Conn that can be half closed. Bytes that have come are in chunks, which
// the windows of flow bound.
type stream struct {
	peer    address
	publish func(message []byte) error
	detach  func(*stream) // the connection knows it no more
	pool    *pool
	opened  chan struct{} // closed when the other end has answered, or the stream has ended

	mu       sync.Mutex
	cond     *sync.Cond // when anything below has changed
	flow     *hub.Flow
	heard    time.Time // when the last message has come
	known    bool      // the other end has answered
	chunks   [][]byte
	failed   error // why no more comes and nothing can be sent, or nil
	unsent   error // why nothing can be sent, or nil
	closed   bool
	detached bool

	readUntil, writeUntil deadline
}

// newStream makes an end of a stream that has FirstWindow of the pool.
func newStream(p *pool, peer address, allowed uint64) *stream {
	s := &stream{peer: peer, pool: p, flow: hub.NewFlow(allowed), heard: time.Now(), opened: make(chan struct{})}
	s.cond = sync.NewCond(&s.mu)
	return s
}

// handle takes a message of the other end, whose bytes it keeps. It does not wait for the reader.
func (s *stream) handle(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return
	}
	s.heard = time.Now()
	m, err := s.flow.Receive(message)
	switch {
	case err != nil:
		s.publish(hub.ResetFrame())
		s.failLocked(err)
		return
	case m.Kind == hub.Reset && s.flow.Received():
		s.unsent = errReset // it reads no more, and all that it has sent is here
		s.detachLocked()
	case m.Kind == hub.Reset:
		s.failLocked(errReset)
	case m.Kind == hub.Data && !s.closed:
		s.keepLocked(m.Data)
	}
	if s.flow.Ended() {
		s.detachLocked()
	}
	s.openLocked()
	s.cond.Broadcast()
}

// keepLocked keeps bytes for the reader. Those of small messages are put together, so that a message costs nothing but
// its bytes.
func (s *stream) keepLocked(b []byte) {
	if last := len(s.chunks) - 1; last >= 0 && len(b) < hub.MaxData/8 && len(s.chunks[last]) < hub.MaxData {
		s.chunks[last] = append(s.chunks[last], b...)
		return
	}
	if len(b) < hub.MaxData/8 {
		b = slices.Clone(b) // with nothing of the message
	}
	s.chunks = append(s.chunks, b)
}

func (s *stream) openLocked() {
	if !s.known {
		s.known = true
		close(s.opened)
	}
}

// failLocked ends the stream for an error. What has come can be read.
func (s *stream) failLocked(err error) {
	if s.failed != nil {
		return
	}
	s.failed = err
	s.detachLocked()
	s.openLocked()
	s.cond.Broadcast()
}

func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(err)
}

func (s *stream) detachLocked() {
	if !s.detached {
		s.detached = true
		s.detach(s)
	}
}

// tick says that this end is there, and ends the stream if the other end is not.
func (s *stream) tick(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failed != nil || s.detached:
	case now.Sub(s.heard) > silence:
		s.publish(hub.ResetFrame())
		s.failLocked(errSilence)
	case s.known:
		s.sendLocked(s.flow.Grant())
	}
}

func (s *stream) sendLocked(message []byte) {
	if message == nil || s.detached {
		return
	}
	if err := s.publish(message); err != nil {
		s.failLocked(err)
	}
}

// Read reads what has come, also before an error.
func (s *stream) Read(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.closed:
			return 0, net.ErrClosed
		case s.readUntil.passed():
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case len(s.chunks) > 0:
			n = copy(b, s.chunks[0])
			if s.chunks[0] = s.chunks[0][n:]; len(s.chunks[0]) == 0 {
				s.chunks[0] = nil
				s.chunks = s.chunks[1:]
			}
			if s.failed == nil {
				s.sendLocked(s.flow.Consume(n, s.pool.take))
			}
			return n, nil
		case s.flow.Received():
			return 0, io.EOF
		case s.failed != nil:
			return 0, s.failed
		}
		s.cond.Wait()
	}
}

// Write sends bytes, as the other end reads them. It blocks while that has a window of unread bytes.
func (s *stream) Write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.closed:
			return n, net.ErrClosed
		case s.failed != nil:
			return n, s.failed
		case s.unsent != nil:
			return n, s.unsent
		case s.writeUntil.passed():
			return n, os.ErrDeadlineExceeded
		case n == len(b):
			return n, nil
		}
		message, sent := s.flow.Send(b[n:])
		if sent == 0 {
			s.cond.Wait()
			continue
		}
		s.sendLocked(message)
		n += sent
	}
}

// CloseWrite says that nothing more is sent.
func (s *stream) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return net.ErrClosed
	case s.failed != nil:
		return s.failed
	}
	s.finishLocked()
	return nil
}

func (s *stream) finishLocked() {
	s.sendLocked(s.flow.Finish())
	s.unsent = io.ErrClosedPipe
	if s.flow.Ended() {
		s.detachLocked()
	}
	s.cond.Broadcast()
}

// Close ends the stream. All that was written arrives. What the other end sends does not.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.chunks = nil
	s.pool.give(s.flow.Window())
	s.readUntil.set(time.Time{}, s)
	s.writeUntil.set(time.Time{}, s)
	if s.failed == nil {
		s.finishLocked()
		if !s.flow.Received() && !s.detached {
			s.publish(hub.ResetFrame())
		}
		s.failLocked(net.ErrClosed)
	}
	s.cond.Broadcast()
	return nil
}

// LocalAddr and RemoteAddr return names that are no addresses of a network.
func (s *stream) LocalAddr() net.Addr  { return address("this end") }
func (s *stream) RemoteAddr() net.Addr { return s.peer }

// SetDeadline, SetReadDeadline and SetWriteDeadline are as net.Conn has them.
func (s *stream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

func (s *stream) SetReadDeadline(t time.Time) error { return s.setDeadline(&s.readUntil, t) }

func (s *stream) SetWriteDeadline(t time.Time) error { return s.setDeadline(&s.writeUntil, t) }

func (s *stream) setDeadline(d *deadline, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	d.set(t, s)
	s.cond.Broadcast()
	return nil
}

// A deadline wakes those who wait on a stream.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) set(at time.Time, s *stream) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = at
	if !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cond.Broadcast()
		})
	}
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// An address names the other end of a stream.
type address string

// Network says that it is behind a hub.
func (address) Network() string  { return "hub" }
func (a address) String() string { return string(a) }
