//go:build unix

// Package nonblock makes the system calls that move the bytes of a key, on descriptors in
// nonblocking mode. To the scheduler of Go every system call may block: the first one after a
// process was idle wakes a thread that looks every 20 µs, while there is work, whether a call
// takes too long. For a key those wake-ups cost more than all else. A call on a descriptor in
// nonblocking mode returns at once, and on Linux this package does not announce it.
package nonblock

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Conn is a file or socket in nonblocking mode, whose reads and writes wait in the poller of the
// runtime. Its owner closes it, which ends them.
type Conn struct{ raw syscall.RawConn }

// New returns a Conn of a file or socket.
func New(c syscall.Conn) (*Conn, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Conn{raw}, nil
}

// Read implements [io.Reader].
func (c *Conn) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	closed := c.raw.Read(func(fd uintptr) bool {
		n, err = Read(fd, b)
		return err != syscall.EAGAIN
	})
	switch {
	case closed != nil:
		return 0, closed
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements [io.Writer].
func (c *Conn) Write(b []byte) (int, error) { return c.write(b, Write) }

// SendAll is Write to a socket, with flags of sendmsg(2).
func (c *Conn) SendAll(b []byte, flags int) (int, error) {
	return c.write(b, func(fd uintptr, b []byte) (int, error) { return Send(fd, b, flags) })
}

func (c *Conn) write(b []byte, call func(fd uintptr, b []byte) (int, error)) (n int, err error) {
	closed := c.raw.Write(func(fd uintptr) bool {
		for n < len(b) {
			var written int
			if written, err = call(fd, b[n:]); err != nil {
				return err != syscall.EAGAIN
			}
			n += written
		}
		return true
	})
	if closed != nil {
		return n, closed
	}
	return n, os.NewSyscallError("write", err)
}

// Send sends a datagram to where a socket is connected. It never blocks: syscall.EAGAIN or
// ENOBUFS means that the receiver's queue is full.
func (c *Conn) Send(b []byte) (err error) {
	closed := c.raw.Write(func(fd uintptr) bool {
		_, err = Send(fd, b, unix.MSG_DONTWAIT)
		return true
	})
	if closed != nil {
		return closed
	}
	return err
}
