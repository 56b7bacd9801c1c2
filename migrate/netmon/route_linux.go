package netmon

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkInterface returns why packets to an address cannot leave through an
// interface, although a socket that is bound to it can be connected.
func checkInterface(to netip.Addr, iface string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil // nothing can be checked
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(iface)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	if request.Uint16()&unix.IFF_RUNNING == 0 {
		return unix.ENETDOWN
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, request); err != nil {
		return err
	}
	// For a bound socket without a route, the kernel assumes that any IPv4 address is
	// on the interface's link. It does not if asked for the route itself.
	if !to.Is4() {
		return nil
	}
	_, err = routeInterface(to, request.Uint32(), unix.RTM_F_FIB_MATCH)
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return err
	}
	return nil
}

// interfaceTo returns the name of the interface through which packets to an
// address leave, or "" if the kernel does not say.
func interfaceTo(to netip.Addr) string {
	index, err := routeInterface(to, 0, 0)
	if err != nil {
		return ""
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("")
	if err != nil {
		return ""
	}
	request.SetUint32(index)
	if unix.IoctlIfreq(fd, unix.SIOCGIFNAME, request) != nil {
		return ""
	}
	return request.Name()
}

// routeInterface asks the kernel for the route to an address, through the interface with an index unless that is 0.
// It returns the index of the route's interface, or 0 if the route has several.
func routeInterface(to netip.Addr, index, flags uint32) (uint32, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if err := unix.Sendto(fd, routeRequest(to, index, flags), 0, kernel); err != nil {
		return 0, err
	}
	answer := make([]byte, 4<<10)
	// The kernel answers before Sendto returns.
	n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT)
	if err != nil {
		return 0, err
	}
	return parseRoute(answer[:n])
}

// routeRequest encodes an RTM_GETROUTE request, see rtnetlink(7).
func routeRequest(to netip.Addr, index, flags uint32) []byte {
	family := unix.AF_INET6
	if to.Is4() {
		family = unix.AF_INET
	}
	b := make([]byte, unix.SizeofNlMsghdr)
	b = append(b, byte(family), byte(to.BitLen()), 0, 0, 0, 0, 0, 0)
	b = binary.NativeEndian.AppendUint32(b, flags)
	b = appendAttr(b, unix.RTA_DST, to.AsSlice())
	if index != 0 {
		b = appendAttr(b, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, index))
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.RTM_GETROUTE)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	return b
}

// appendAttr appends an attribute whose length is a multiple of 4 bytes.
func appendAttr(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	return append(b, value...)
}

// parseRoute returns the interface's index in the kernel's answer to an RTM_GETROUTE request, or the error in it.
func parseRoute(b []byte) (uint32, error) {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return 0, err
	}
	for _, m := range messages {
		if m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4 {
			return 0, unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
		}
		if m.Header.Type != unix.RTM_NEWROUTE {
			continue
		}
		attrs, err := attributes(m, unix.SizeofRtMsg)
		if err != nil {
			return 0, err
		}
		for _, a := range attrs {
			if a.Attr.Type == unix.RTA_OIF && len(a.Value) == 4 {
				return binary.NativeEndian.Uint32(a.Value), nil
			}
		}
	}
	return 0, nil
}

// attributes returns the attributes that follow a message's header of headerLen bytes.
func attributes(m syscall.NetlinkMessage, headerLen int) ([]syscall.NetlinkRouteAttr, error) {
	if len(m.Data) < headerLen {
		return nil, unix.EINVAL // ParseNetlinkRouteAttr would panic
	}
	return syscall.ParseNetlinkRouteAttr(&m)
}
