package tcp

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bounded returns the connection with a bound on the bytes that the kernel takes and has not
// sent.
func bounded(c *net.TCPConn, raw syscall.RawConn, bytes int) net.Conn {
	raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes) })
	return c
}

// setUserTimeout does nothing: the system has its own timeout.
func setUserTimeout(syscall.RawConn, time.Duration) {}

// roundTrip returns the smoothed round trip, or 0 if it is not known.
func roundTrip(c syscall.RawConn) (rtt time.Duration) {
	c.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPConnectionInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_CONNECTION_INFO); err == nil {
			rtt = time.Duration(info.Srtt) * time.Millisecond
		}
	})
	return rtt
}
