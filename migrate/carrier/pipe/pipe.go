// Package pipe is a carrier over any ordered byte stream, such as TLS, a unix socket or the
// standard streams of a program. It has no datagrams.
package pipe

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
)

// A Stream brings all bytes in order. One goroutine reads and another writes at the same time.
// Close ends both directions, and makes calls that block return an error.
//
// A stream may have the methods SetDeadline, SetWriteDeadline and CloseWrite, as those of package net have.
type Stream interface{ io.ReadWriteCloser }

// A Conn is a carrier over a stream.
type Conn struct {
	stream Stream
	close  func() error

	reads, writes           atomic.Uint64
	bytesRead, bytesWritten atomic.Uint64
	begun                   time.Time
	lastRead                atomic.Int64 // nanoseconds after begun, 0 before the first read
}

var _ carrier.StatsReader = (*Conn)(nil)

// New returns a carrier over a stream. The carrier owns the stream, and closes it.
func New(s Stream) *Conn {
	return &Conn{stream: s, close: sync.OnceValue(s.Close), begun: time.Now()}
}

// errNoDatagrams is the error of the datagram lane, which a stream does not have.
var errNoDatagrams = errors.New("the carrier has no datagrams")

// Read implements [carrier.Carrier].
func (p *Conn) Read(b []byte) (int, error) {
	n, err := p.stream.Read(b)
	if n > 0 {
		p.reads.Add(1)
		p.bytesRead.Add(uint64(n))
		p.lastRead.Store(max(int64(time.Since(p.begun)), 1))
	}
	return n, err
}

// Write implements [carrier.Carrier].
func (p *Conn) Write(b []byte) (int, error) {
	n, err := p.stream.Write(b)
	if n > 0 {
		p.writes.Add(1)
		p.bytesWritten.Add(uint64(n))
	}
	return n, err
}

// SendDatagram returns an error: there are no datagrams.
func (p *Conn) SendDatagram([]byte) error { return errNoDatagrams }

// ReceiveDatagram returns an error at once: there are no datagrams.
func (p *Conn) ReceiveDatagram() ([]byte, error) { return nil, errNoDatagrams }

// Datagrams implements [carrier.Carrier].
func (p *Conn) Datagrams() bool { return false }

// Close implements [carrier.Carrier].
func (p *Conn) Close() error { return p.close() }

// Stats implements [carrier.StatsReader]. A read or a write counts as a packet. The round trip is not known.
func (p *Conn) Stats() carrier.Stats {
	s := carrier.Stats{
		PacketsSent: p.writes.Load(), BytesSent: p.bytesWritten.Load(),
		PacketsReceived: p.reads.Load(), BytesReceived: p.bytesRead.Load(),
	}
	if n := p.lastRead.Load(); n > 0 {
		s.LastReceived = p.begun.Add(time.Duration(n))
	}
	return s
}

// SetDeadline bounds how long reads and writes may block. It returns an error if the stream has no deadlines.
func (p *Conn) SetDeadline(t time.Time) error {
	if s, ok := p.stream.(interface{ SetDeadline(time.Time) error }); ok {
		return s.SetDeadline(t)
	}
	return os.ErrNoDeadline
}

// SetWriteDeadline bounds how long writes may block. It returns an error if the stream has no deadlines.
func (p *Conn) SetWriteDeadline(t time.Time) error {
	if s, ok := p.stream.(interface{ SetWriteDeadline(time.Time) error }); ok {
		return s.SetWriteDeadline(t)
	}
	return os.ErrNoDeadline
}

// CloseWrite ends the stream in this direction: the peer reads the rest, then io.EOF. It returns
// an error if the stream cannot do that.
func (p *Conn) CloseWrite() error {
	if s, ok := p.stream.(interface{ CloseWrite() error }); ok {
		return s.CloseWrite()
	}
	return errors.ErrUnsupported
}
