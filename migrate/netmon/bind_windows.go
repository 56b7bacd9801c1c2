package netmon

import (
	"encoding/binary"
	"net"

	"golang.org/x/sys/windows"
)

// unicastIF is the value of both IP_UNICAST_IF and IPV6_UNICAST_IF.
const unicastIF = 31

// bind binds a socket to an interface. An IPv6 socket may carry IPv4 too, so both options are set.
func bind(fd uintptr, iface string, ipv6 bool) error {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return err
	}
	// IPv4 takes the index in network byte order, IPv6 in the machine's.
	var swapped [4]byte
	binary.BigEndian.PutUint32(swapped[:], uint32(i.Index))
	index := int(binary.NativeEndian.Uint32(swapped[:]))
	errIPv4 := windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IP, unicastIF, index)
	if ipv6 { // errIPv4 does not count: an IPv6-only socket refuses that option
		return windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IPV6, unicastIF, i.Index)
	}
	return errIPv4
}
