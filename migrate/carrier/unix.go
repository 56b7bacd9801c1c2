//go:build unix

package carrier

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A Unix is a carrier over two unix sockets: one for the stream, and one that
// keeps the boundaries of datagrams, so that neither blocks the other.
type Unix struct {
	stream    *net.UnixConn
	datagrams *net.UnixConn // nil if there are none
	raw       rawConn
	buf       [MaxDatagram + 1]byte
	close     func() error
}

// rawConn is the part of syscall.RawConn that sends without waiting.
type rawConn interface {
	Write(f func(fd uintptr) (done bool)) error
}

// NewUnix returns a carrier over a stream socket and, unless it is nil, a
// datagram socket. It closes both.
func NewUnix(stream, datagrams *net.UnixConn) (*Unix, error) {
	u := &Unix{stream: stream, datagrams: datagrams}
	if datagrams != nil {
		raw, err := datagrams.SyscallConn()
		if err != nil {
			return nil, err
		}
		u.raw = raw
	}
	u.close = sync.OnceValue(func() error {
		if datagrams != nil {
			datagrams.Close()
		}
		return stream.Close()
	})
	return u, nil
}

// DatagramPair returns the two ends of a datagram socket pair: one for this
// process, and one as a file to be passed to another.
func DatagramPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	ours := os.NewFile(uintptr(fds[0]), "datagrams")
	theirs := os.NewFile(uintptr(fds[1]), "datagrams")
	conn, err := DatagramSocket(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// DatagramSocket returns the datagram socket that a file is, and closes the
// file.
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

// Read implements [Carrier].
func (u *Unix) Read(b []byte) (int, error) { return u.stream.Read(b) }

// Write implements [Carrier].
func (u *Unix) Write(b []byte) (int, error) { return u.stream.Write(b) }

// SendDatagram implements [Carrier]. It never waits.
func (u *Unix) SendDatagram(b []byte) error {
	if u.raw == nil {
		return net.ErrClosed
	}
	if len(b) == 0 {
		return nil // says nothing, and looks like the end
	}
	var sendErr error
	err := u.raw.Write(func(fd uintptr) bool {
		sendErr = unix.Sendto(int(fd), b, unix.MSG_DONTWAIT, nil)
		return true
	})
	if err != nil {
		return err
	}
	switch sendErr {
	case unix.EAGAIN, unix.ENOBUFS, unix.EINTR, unix.EMSGSIZE:
		return nil // dropped
	}
	return sendErr
}

// ReceiveDatagram implements [Carrier].
func (u *Unix) ReceiveDatagram() ([]byte, error) {
	if u.datagrams == nil {
		return nil, net.ErrClosed
	}
	for {
		n, err := u.datagrams.Read(u.buf[:])
		if err != nil {
			return nil, err
		}
		if n == 0 { // of a socket that was shut down, again and again
			return nil, io.EOF
		}
		if n <= MaxDatagram {
			return append([]byte(nil), u.buf[:n]...), nil
		}
	}
}

// Datagrams implements [Carrier].
func (u *Unix) Datagrams() bool { return u.datagrams != nil }

// Close implements [Carrier].
func (u *Unix) Close() error { return u.close() }
