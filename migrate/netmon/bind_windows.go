package netmon

import (
	"encoding/binary"
	"net"

	"golang.org/x/sys/windows"
)

// unicastIF is IP_UNICAST_IF as well as IPV6_UNICAST_IF.
const unicastIF = 31

// bind binds a socket of IPv4, or one of IPv6, which may be of both.
func bind(fd uintptr, iface string, six bool) error {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return err
	}
	// IPv4 has the index in network byte order, IPv6 in the machine's.
	var swapped [4]byte
	binary.BigEndian.PutUint32(swapped[:], uint32(i.Index))
	index := int(binary.NativeEndian.Uint32(swapped[:]))
	four := windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IP, unicastIF, index)
	if six { // the option of IPv4 is refused where the socket is of IPv6 only
		return windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IPV6, unicastIF, i.Index)
	}
	return four
}
