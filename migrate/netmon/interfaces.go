package netmon

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// MaxInterfaces bounds what Interfaces returns: more than the usable interfaces
// of a personal machine, and few enough to try each.
const MaxInterfaces = 16

// Interfaces returns the names of the interfaces that may lead to another network:
// up, running, not loopback, and with an address that is valid beyond their link.
// Of more than MaxInterfaces it returns those that the system created first.
func Interfaces() ([]string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	slices.SortFunc(all, func(a, b net.Interface) int { return cmp.Compare(a.Index, b.Index) })
	var names []string
	for _, i := range all {
		if len(names) < MaxInterfaces && usable(i) {
			names = append(names, i.Name)
		}
	}
	return names, nil
}

// usable reports whether an interface may lead to another network.
func usable(i net.Interface) bool {
	return i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0 && i.Flags&net.FlagLoopback == 0 &&
		slices.ContainsFunc(addresses(i), netip.Addr.IsGlobalUnicast)
}

// addresses returns the addresses of an interface, none if it is gone by now.
func addresses(i net.Interface) (found []netip.Addr) {
	all, _ := i.Addrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			addr, _ := netip.AddrFromSlice(n.IP)
			found = append(found, addr.Unmap())
		}
	}
	return found
}

// interfaceWith returns the name of the interface that has an address, or "".
func interfaceWith(addr netip.Addr) string {
	all, _ := net.Interfaces()
	for _, i := range all {
		if slices.Contains(addresses(i), addr) {
			return i.Name
		}
	}
	return ""
}
