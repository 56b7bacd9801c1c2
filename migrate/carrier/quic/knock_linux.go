package quic

import (
	"errors"
	"net"
	"syscall"
)

// forbidFragments makes the kernel and the network drop packets that are too large for the path, as
// those of QUIC are (RFC 9000, 14). A socket of both families has both options.
func forbidFragments(socket net.PacketConn) error {
	conn, ok := socket.(syscall.Conn)
	if !ok {
		return nil // it is no socket of the system
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var v4, v6 error
	err = raw.Control(func(fd uintptr) {
		v4 = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER, syscall.IP_PMTUDISC_DO)
		v6 = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IPV6, syscall.IPV6_MTU_DISCOVER, syscall.IPV6_PMTUDISC_DO)
	})
	if v4 != nil && v6 != nil {
		err = errors.Join(err, v4, v6)
	}
	return err
}
