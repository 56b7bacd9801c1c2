package netmon

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// addresses returns the addresses of all interfaces, by index. It asks the kernel
// once; net.Interface.Addrs would read the addresses of all interfaces each time.
func addresses([]net.Interface) (map[int][]netip.Addr, error) {
	b, err := syscall.NetlinkRIB(unix.RTM_GETADDR, unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	return parseAddresses(b)
}

// parseAddresses returns the addresses in RTM_NEWADDR messages, by interface index.
func parseAddresses(b []byte) (map[int][]netip.Addr, error) {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return nil, err
	}
	found := make(map[int][]netip.Addr)
	for _, m := range messages {
		if m.Header.Type != unix.RTM_NEWADDR {
			continue
		}
		attrs, err := attributes(m, unix.SizeofIfAddrmsg)
		if err != nil {
			return nil, err
		}
		index := int(binary.NativeEndian.Uint32(m.Data[4:]))
		// If there is IFA_LOCAL, then IFA_ADDRESS is the address of the other end.
		var addr netip.Addr
		for _, a := range attrs {
			if a.Attr.Type == unix.IFA_LOCAL || a.Attr.Type == unix.IFA_ADDRESS && !addr.IsValid() {
				addr, _ = netip.AddrFromSlice(a.Value)
			}
		}
		if addr.IsValid() {
			found[index] = append(found[index], addr)
		}
	}
	return found, nil
}
