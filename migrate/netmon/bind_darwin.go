package netmon

import (
	"net"

	"golang.org/x/sys/unix"
)

// bind binds a socket of IPv4, or one of IPv6, which may be of both.
func bind(fd uintptr, iface string, six bool) error {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return err
	}
	four := unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BOUND_IF, i.Index)
	if six { // the option of IPv4 is refused where the socket is of IPv6 only
		return unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_BOUND_IF, i.Index)
	}
	return four
}
