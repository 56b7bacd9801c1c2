package unixsock

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// packets is the type of the sockets for datagrams. They are connected for good: with a socket of type SOCK_DGRAM, a
// process that may make none could still send to any other one of the machine, also descriptors.
const packets = unix.SOCK_SEQPACKET

// RefuseDescriptors makes a unix socket take none from its other end, where the kernel can (Linux 6.16).
func RefuseDescriptors(c syscall.Conn) {
	if raw, err := c.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) })
	}
}
