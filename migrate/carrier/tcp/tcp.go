// Package tcp is a carrier over TLS 1.3 on a TCP connection, for networks that block UDP. It
// proves the same identities as a QUIC connection, and negotiates the same protocol by ALPN. All
// is on one stream: there are no datagrams. Each connection has a whole handshake, without tickets.
//
// The kernel accepts few bytes more than it can send: Write blocks until the path has taken
// nearly all of what was written. So the user decides late what is sent next, and what must be
// fast does not wait behind a flood.
package tcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/pipe"
)

const (
	// notSentLowat bounds the bytes that the kernel takes and cannot send yet: 130 ms of a link
	// with 1 Mbit/s. On a fast link it is enough for the time until the writer runs again: at
	// 1 Gbit/s that is 130 µs.
	notSentLowat = 16 << 10

	// readSize is how many bytes a client reads from the kernel at once: what a server writes at once, 64 KiB of frames
	// in records of TLS, which reads each in two parts. A server has too many connections for that.
	readSize = 66 << 10

	// maxRecord is how many bytes a record of TLS holds at most.
	maxRecord = 16 << 10

	// A server keeps a connection whose client answers nothing for carrier.DeadTime. It asks after idleTime of silence,
	// and then each probeTime.
	idleTime  = carrier.DeadTime / 3
	probeTime = carrier.DeadTime / 6
)

// A Conn is a carrier over a TLS connection. Its stream is that of the connection. It has all
// optional abilities of a carrier.
type Conn struct {
	*pipe.Conn
	tls           *tls.Conn
	tcp           *net.TCPConn    // the connection, or what it runs on; nil if that is no TCP socket
	raw           syscall.RawConn // of tcp, or nil
	plain         bool            // the connection is the socket
	local, remote netip.AddrPort
}

var (
	_ carrier.StatsReader = (*Conn)(nil)
	_ carrier.Addressed   = (*Conn)(nil)
)

// Dial connects to a server by the function dial, and does the handshake. On an error nothing is left open.
func Dial(
	ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error),
	addr netip.AddrPort, conf *tls.Config,
) (*Conn, error) {
	conn, err := dial(ctx, "tcp", addr.String())
	if err != nil {
		return nil, err
	}
	if socket := socketOf(conn); socket != nil {
		socket.SetKeepAlive(false) // the client sends pings, when it needs an answer
	}
	c := newConn(conn, readSize, addr, tls.Client, conf)
	if err := c.Handshake(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Server returns the server's end of a connection that was accepted. The caller calls Handshake
// before it reads or writes. The carrier owns the connection.
func Server(conn net.Conn, conf *tls.Config) *Conn {
	if socket := socketOf(conn); socket != nil {
		socket.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: idleTime, Interval: probeTime, Count: int((carrier.DeadTime - idleTime) / probeTime),
		})
	}
	c := newConn(conn, 0, RemoteAddr(conn), tls.Server, conf)
	if c.raw != nil {
		setUserTimeout(c.raw, carrier.DeadTime)
	}
	return c
}

// newConn returns an end of a connection, which is read through a buffer unless that has no size.
func newConn(
	conn net.Conn, buffer int, remote netip.AddrPort, end func(net.Conn, *tls.Config) *tls.Conn, conf *tls.Config,
) *Conn {
	c := &Conn{local: addrPort(conn.LocalAddr()), remote: netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())}
	if tcp := socketOf(conn); tcp != nil {
		if raw, err := tcp.SyscallConn(); err == nil {
			c.tcp, c.raw = tcp, raw
			if _, c.plain = conn.(*net.TCPConn); c.plain {
				conn = bound(tcp)
			}
		}
	}
	conf = conf.Clone()
	conf.MinVersion = tls.VersionTLS13 // that of QUIC
	conf.SessionTicketsDisabled = true // they save no round trip
	s := &socket{Conn: conn, in: conn}
	if buffer > 0 {
		s.in = bufio.NewReaderSize(conn, buffer)
	}
	c.tls = end(s, conf)
	c.Conn = pipe.New(&stream{c.tls, s})
	return c
}

// bound returns a socket whose kernel takes few bytes more than it can send.
func bound(c *net.TCPConn) net.Conn {
	c.SetNoDelay(true)
	raw, err := c.SyscallConn()
	if err != nil {
		return c
	}
	return bounded(c, raw, notSentLowat)
}

// socketOf returns the TCP socket that a connection is, or runs on as TLS does, or nil.
func socketOf(conn net.Conn) *net.TCPConn {
	for {
		switch c := conn.(type) {
		case *net.TCPConn:
			return c
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// Bound makes a listener accept connections whose kernel takes few bytes more than it can send, for servers that have
// something between the socket and the carrier.
func Bound(l net.Listener) net.Listener { return boundListener{l} }

type boundListener struct{ net.Listener }

func (l boundListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return bound(tcp), err
	}
	return c, err
}

// addrPort returns a TCP address. It removes the IPv6 prefix that a dual-stack socket gives an
// IPv4 address.
func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	addr := tcp.AddrPort()
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
}

// errHungUp is the error of a connection that the peer has closed.
var errHungUp = errors.New("the peer has closed the connection")

// A socket is what TLS runs on. TLS does not tell its end from that of the stream, so it has an
// error of its own.
type socket struct {
	net.Conn
	in io.Reader // of the same

	mu     sync.Mutex // TLS also writes when it reads a request for new keys
	held   *bytes.Buffer
	failed error // of release: TLS has taken those records for written
}

// heldBuffers are for records of TLS that are written together.
var heldBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// hold keeps what is written until release.
func (s *socket) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = heldBuffers.Get().(*bytes.Buffer)
}

// release writes what was held, at once: each write wakes the peer.
func (s *socket) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held
	s.held = nil
	_, s.failed = s.Conn.Write(held.Bytes())
	held.Reset()
	heldBuffers.Put(held)
	return s.failed
}

func (s *socket) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failed != nil:
		return 0, s.failed
	case s.held != nil:
		return s.held.Write(b)
	}
	return s.Conn.Write(b)
}

func (s *socket) Read(b []byte) (int, error) {
	n, err := s.in.Read(b)
	if err == io.EOF {
		err = errHungUp
	}
	return n, err
}

// A stream is a TLS connection that is closed without a word to the peer: that could block.
type stream struct {
	*tls.Conn
	socket *socket
}

func (s *stream) Close() error { return s.socket.Close() }

// Write writes all records of b together.
func (s *stream) Write(b []byte) (int, error) {
	if len(b) <= maxRecord {
		return s.Conn.Write(b)
	}
	s.socket.hold()
	n, err := s.Conn.Write(b)
	if failed := s.socket.release(); failed != nil {
		return 0, failed
	}
	return n, err
}

// errProtocol is the error of a peer that speaks TLS, but not our protocol.
var errProtocol = errors.New("the peer does not speak this protocol (ALPN)")

// Handshake does the TLS handshake, unless ctx ends before. On an error it closes the carrier.
func (c *Conn) Handshake(ctx context.Context) error {
	err := c.tls.HandshakeContext(ctx)
	if err == nil && c.tls.ConnectionState().NegotiatedProtocol == "" {
		err = errProtocol
	}
	if err != nil {
		c.Close()
		return fmt.Errorf("TLS handshake: %w", err)
	}
	return nil
}

// TLS returns the state of the handshake. Its exporter (RFC 8446, 7.5) fails before that is complete.
func (c *Conn) TLS() tls.ConnectionState { return c.tls.ConnectionState() }

// LocalAddr returns the address of the socket.
func (c *Conn) LocalAddr() netip.AddrPort { return c.local }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// Stats implements [carrier.StatsReader]. A read or a write counts as a packet. The round trip
// is that of the kernel; it is not known if the connection is not a plain socket, or if the system does not tell.
func (c *Conn) Stats() carrier.Stats {
	s := c.Conn.Stats()
	if c.plain { // otherwise the socket may lead to a proxy
		s.RTT = roundTrip(c.raw)
	}
	return s
}

// SetReadBuffer sets how many bytes the kernel takes from the peer before they are read. The
// kernel then does not choose that itself.
func (c *Conn) SetReadBuffer(bytes int) {
	if c.raw != nil {
		setReadBuffer(c.raw, bytes)
	}
}

// HungUp reports whether the peer has closed its end or the connection has failed, as far as the
// system tells that before a read does.
func (c *Conn) HungUp() bool { return c.raw != nil && hungUp(c.raw) }

// RemoteAddr returns the address of the client of a connection that was accepted.
func RemoteAddr(conn net.Conn) netip.AddrPort { return addrPort(conn.RemoteAddr()) }

// Refuse ends a connection that was accepted: the client learns it at once, by a reset.
func Refuse(conn net.Conn) error {
	if socket := socketOf(conn); socket != nil {
		socket.SetLinger(0)
	}
	return conn.Close()
}

// PeerGone reports whether a connection ended because the peer closed it, or answers no more. The
// end of the stream, by [Conn.CloseWrite], is no such error.
func PeerGone(err error) bool { return PeerClosed(err) || errors.Is(err, syscall.ETIMEDOUT) }

// PeerClosed reports whether a connection ended because the peer closed it.
func PeerClosed(err error) bool {
	return errors.Is(err, errHungUp) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// ClosedHere reports whether a connection ended because this end closed it.
func ClosedHere(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}
