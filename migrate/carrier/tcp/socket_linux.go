package tcp

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/nonblock"
)

// congestionControl is that which the kernel is asked for. Others take each lost packet for congestion.
const congestionControl = "bbr"

// A lowConn is a connection whose kernel takes few bytes more than it can send.
type lowConn struct {
	*net.TCPConn
	bytes *nonblock.Conn
}

// bounded returns the connection with a bound on the bytes that the kernel takes and has not
// sent: those, and one write. Without it, writes would fill a buffer of megabytes. It also sets
// congestionControl where the kernel allows that.
func bounded(c *net.TCPConn, raw syscall.RawConn, lowat int) net.Conn {
	raw.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, lowat)
		unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestionControl)
	})
	bytes, err := nonblock.New(c)
	if err != nil {
		return c
	}
	return &lowConn{c, bytes}
}

// NetConn returns the socket.
func (c *lowConn) NetConn() net.Conn { return c.TCPConn }

// Read implements [net.Conn].
func (c *lowConn) Read(b []byte) (int, error) { return c.bytes.Read(b) }

// Write writes b as a record of its own: the kernel looks at the bound when it begins a buffer,
// and would first fill the last one, which may have 64 KiB.
func (c *lowConn) Write(b []byte) (int, error) {
	return c.bytes.SendAll(b, unix.MSG_EOR|unix.MSG_NOSIGNAL)
}

// setUserTimeout bounds how long sent bytes may wait for an acknowledgement before the connection
// ends (RFC 5482).
func setUserTimeout(c syscall.RawConn, d time.Duration) {
	c.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}

// setReadBuffer sets how many bytes the kernel takes before they are read. Root may have more than
// the system's limit for that.
func setReadBuffer(c syscall.RawConn, bytes int) {
	c.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes) != nil {
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, bytes)
		}
	})
}

// hungUp reports whether the peer has closed its end, or the connection has failed.
func hungUp(c syscall.RawConn) (gone bool) {
	err := c.Control(func(fd uintptr) {
		const ended = unix.POLLRDHUP | unix.POLLHUP | unix.POLLERR
		events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(events, 0)
		gone = err == nil && n > 0 && events[0].Revents&ended != 0
	})
	return gone || err != nil
}

// roundTrip returns the smoothed round trip, or 0 if it is not known.
func roundTrip(c syscall.RawConn) (rtt time.Duration) {
	c.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			rtt = time.Duration(info.Rtt) * time.Microsecond
		}
	})
	return rtt
}
