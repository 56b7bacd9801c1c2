package netmon

import (
	"net"

	"golang.org/x/sys/unix"
)

// bind binds a socket to an interface. An IPv6 socket may carry IPv4 too, so both options are set.
func bind(fd uintptr, iface string, ipv6 bool) error {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return err
	}
	errIPv4 := unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BOUND_IF, i.Index)
	if ipv6 { // errIPv4 does not count: an IPv6-only socket refuses that option
		return unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_BOUND_IF, i.Index)
	}
	return errIPv4
}
