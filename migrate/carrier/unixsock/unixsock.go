//go:build unix

// Package unixsock is the carrier between a daemon and a holder on one machine: a unix socket for the stream and, for a
// client with datagrams, one end of a socket pair, whose other end the daemon hands over. A carrier takes no
// descriptors.
package unixsock

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/nonblock"
)

// A Conn is a carrier over two unix sockets, one for the stream and one for the datagrams, so
// that neither lane blocks the other.
type Conn struct {
	stream    *net.UnixConn
	datagrams *net.UnixConn  // nil if there are none
	bytes     *nonblock.Conn // of the stream
	messages  *nonblock.Conn // of the datagrams
	buf       [carrier.MaxDatagram + 1]byte
	close     func() error
}

// New returns a carrier over a stream socket and a datagram socket, which may be nil. The
// carrier owns and closes both. From then on it takes no descriptors.
func New(stream, datagrams *net.UnixConn) (*Conn, error) {
	u := &Conn{stream: stream, datagrams: datagrams}
	for _, socket := range u.Sockets() {
		RefuseDescriptors(socket)
	}
	var err error
	if u.bytes, err = nonblock.New(stream); err != nil {
		return nil, err
	}
	if datagrams != nil {
		if u.messages, err = nonblock.New(datagrams); err != nil {
			return nil, err
		}
	}
	u.close = sync.OnceValue(func() error {
		if datagrams != nil {
			datagrams.Close()
		}
		return stream.Close()
	})
	return u, nil
}

// Sockets returns the sockets of the carrier: that of the stream and, if there are datagrams, theirs.
// The carrier still owns them.
func (u *Conn) Sockets() []*net.UnixConn {
	if u.datagrams == nil {
		return []*net.UnixConn{u.stream}
	}
	return []*net.UnixConn{u.stream, u.datagrams}
}

// DatagramPair returns the two ends of a datagram socket pair: one for this process, and one
// as a file to pass to another process. The caller closes both.
func DatagramPair() (*net.UnixConn, *os.File, error) {
	// Not every system has SOCK_CLOEXEC: no other goroutine forks meanwhile.
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, packets, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "datagrams")
	theirs := os.NewFile(uintptr(fds[1]), "datagrams")
	conn, err := DatagramSocket(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// DatagramSocket returns the datagram socket of a file, and closes the file.
func DatagramSocket(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("not a unix socket")
	}
	return conn, nil
}

// Read implements [carrier.Carrier].
func (u *Conn) Read(b []byte) (int, error) { return u.bytes.Read(b) }

// Write implements [carrier.Carrier].
func (u *Conn) Write(b []byte) (int, error) { return u.bytes.Write(b) }

// SendDatagram implements [carrier.Carrier]. It never blocks.
func (u *Conn) SendDatagram(b []byte) error {
	if u.datagrams == nil {
		return net.ErrClosed
	}
	if len(b) == 0 {
		return nil // the other end would take it for the end of the lane
	}
	err := u.messages.Send(b)
	switch err {
	case unix.EAGAIN, unix.ENOBUFS, unix.EMSGSIZE:
		return nil // dropped
	}
	return err
}

// ReceiveDatagram implements [carrier.Carrier].
func (u *Conn) ReceiveDatagram() ([]byte, error) {
	if u.datagrams == nil {
		return nil, net.ErrClosed
	}
	for {
		n, err := u.messages.Read(u.buf[:]) // io.EOF if the socket was shut down
		if err != nil {
			return nil, err
		}
		if n <= carrier.MaxDatagram {
			return append([]byte(nil), u.buf[:n]...), nil
		}
	}
}

// Datagrams implements [carrier.Carrier].
func (u *Conn) Datagrams() bool { return u.datagrams != nil }

// Close implements [carrier.Carrier].
func (u *Conn) Close() error { return u.close() }
