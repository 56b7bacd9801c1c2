package tcp

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bounded returns the connection with a bound on the bytes that the kernel takes and has not sent.
func bounded(c *net.TCPConn, raw syscall.RawConn, bytes int) net.Conn {
	raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes) })
	return c
}

// setUserTimeout does nothing: the system has its own timeout.
func setUserTimeout(syscall.RawConn, time.Duration) {}

// setReadBuffer sets how many bytes the kernel takes before they are read.
func setReadBuffer(c syscall.RawConn, bytes int) {
	c.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, bytes) })
}

// hungUp reports whether the peer has closed its end, or the connection has failed.
func hungUp(c syscall.RawConn) (gone bool) {
	err := c.Control(func(fd uintptr) {
		const ended = unix.POLLHUP | unix.POLLERR
		events := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(events, 0)
		gone = err == nil && n > 0 && events[0].Revents&ended != 0
	})
	return gone || err != nil
}

// roundTrip returns the smoothed round trip, or 0 if it is not known.
func roundTrip(c syscall.RawConn) (rtt time.Duration) {
	c.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPConnectionInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_CONNECTION_INFO); err == nil {
			rtt = time.Duration(info.Srtt) * time.Millisecond
		}
	})
	return rtt
}
