//go:build linux || darwin

package main

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// backlog is how many TCP connections wait to be accepted.
const backlog = 128

// A serverSocket is an address of the server's machine, for UDP and TCP. Its kernel has it as long as a process, or the
// service manager, has a descriptor of it: what arrives while no process reads waits.
type serverSocket struct {
	datagrams net.PacketConn
	listener  net.Listener
	arrived   chan received
	accepted  chan net.Conn
	closed    chan struct{}
}

func (w *world) newServerSocket(addr netip.AddrPort) *serverSocket {
	s := &serverSocket{
		datagrams: w.net.Listen(addr), listener: w.net.ListenStream(addr), arrived: make(chan received),
		accepted: make(chan net.Conn, backlog), closed: make(chan struct{}),
	}
	go s.receive()
	go s.accept()
	return s
}

func (s *serverSocket) receive() {
	for {
		b := make([]byte, 2048)
		n, from, err := s.datagrams.ReadFrom(b)
		if err != nil {
			return
		}
		select {
		case s.arrived <- received{b[:n], from}:
		case <-s.closed:
			return
		}
	}
}

func (s *serverSocket) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		select {
		case s.accepted <- c:
		case <-s.closed:
			c.Close()
			return
		}
	}
}

func (s *serverSocket) close() {
	close(s.closed)
	s.datagrams.Close()
	s.listener.Close()
	for {
		select {
		case c := <-s.accepted:
			c.Close()
		default:
			return
		}
	}
}

// opened returns a process's descriptors of the socket.
func (s *serverSocket) opened(by *half) (net.PacketConn, net.Listener) {
	d := descriptor{socket: s, half: by, closed: make(chan struct{}), once: new(sync.Once)}
	l := d
	l.closed, l.once = make(chan struct{}), new(sync.Once)
	return &datagramDescriptor{descriptor: d, expired: make(chan struct{})}, &listenerDescriptor{l}
}

// A descriptor is one of a serverSocket.
type descriptor struct {
	socket *serverSocket
	half   *half
	closed chan struct{}
	once   *sync.Once
}

func (d *descriptor) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

func (d *descriptor) isClosed() bool {
	select {
	case <-d.closed:
	case <-d.half.dead:
	case <-d.socket.closed:
	default:
		return false
	}
	return true
}

type datagramDescriptor struct {
	descriptor

	mu      sync.Mutex
	expired chan struct{} // closed while a deadline has passed
}

func (d *datagramDescriptor) ReadFrom(b []byte) (int, net.Addr, error) {
	d.mu.Lock()
	expired := d.expired
	d.mu.Unlock()
	if d.isClosed() {
		return 0, nil, net.ErrClosed
	}
	select {
	case r := <-d.socket.arrived:
		return copy(b, r.data), r.from, nil
	case <-expired:
		return 0, nil, os.ErrDeadlineExceeded
	case <-d.closed:
	case <-d.half.dead:
	case <-d.socket.closed:
	}
	return 0, nil, net.ErrClosed
}

func (d *datagramDescriptor) WriteTo(b []byte, addr net.Addr) (int, error) {
	if d.isClosed() {
		return 0, net.ErrClosed
	}
	return d.socket.datagrams.WriteTo(b, addr)
}

// SetReadDeadline takes a time that has passed, or none: QUIC sets no others.
func (d *datagramDescriptor) SetReadDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.expired:
		d.expired = make(chan struct{})
	default:
	}
	if !t.IsZero() {
		close(d.expired)
	}
	return nil
}

func (d *datagramDescriptor) LocalAddr() net.Addr              { return d.socket.datagrams.LocalAddr() }
func (d *datagramDescriptor) SetDeadline(t time.Time) error    { return d.SetReadDeadline(t) }
func (d *datagramDescriptor) SetWriteDeadline(time.Time) error { return nil }
func (d *datagramDescriptor) SetReadBuffer(int) error          { return nil }
func (d *datagramDescriptor) SetWriteBuffer(int) error         { return nil }

type listenerDescriptor struct{ descriptor }

func (l *listenerDescriptor) Addr() net.Addr { return l.socket.listener.Addr() }

// Accept takes the next connection. If the process has no descriptor for it, that is closed.
func (l *listenerDescriptor) Accept() (net.Conn, error) {
	if l.isClosed() {
		return nil, net.ErrClosed
	}
	select {
	case c := <-l.socket.accepted:
		kept := &acceptedConn{c, l.half}
		if err := l.half.keep(kept); err != nil {
			return nil, err
		}
		return kept, nil
	case <-l.closed:
	case <-l.half.dead:
	case <-l.socket.closed:
	}
	return nil, net.ErrClosed
}

// An acceptedConn is a TCP connection of a process.
type acceptedConn struct {
	net.Conn
	half *half
}

func (c *acceptedConn) Close() error {
	c.half.forget(c)
	return c.Conn.Close()
}

// CloseWrite ends the stream in this direction.
func (c *acceptedConn) CloseWrite() error {
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
}
