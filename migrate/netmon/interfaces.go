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
	all, err := interfaces()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, i := range all {
		if i.usable() && len(names) < MaxInterfaces {
			names = append(names, i.name)
		}
	}
	return names, nil
}

// A netInterface is an interface with its addresses.
type netInterface struct {
	name  string
	flags net.Flags
	addrs []netip.Addr
}

// usable reports whether an interface may lead to another network.
func (i netInterface) usable() bool {
	return i.flags&net.FlagUp != 0 && i.flags&net.FlagRunning != 0 && i.flags&net.FlagLoopback == 0 &&
		slices.ContainsFunc(i.addrs, netip.Addr.IsGlobalUnicast)
}

// interfaces returns all interfaces, sorted by the system's index.
func interfaces() ([]netInterface, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	addrs, err := addresses(list)
	if err != nil {
		return nil, fmt.Errorf("list the addresses: %w", err)
	}
	slices.SortFunc(list, func(a, b net.Interface) int { return cmp.Compare(a.Index, b.Index) })
	all := make([]netInterface, len(list))
	for n, i := range list {
		all[n] = netInterface{i.Name, i.Flags, addrs[i.Index]}
	}
	return all, nil
}

// interfaceWith returns the name of the interface that has an address, or "".
func interfaceWith(addr netip.Addr) string {
	all, err := interfaces()
	if err != nil {
		return ""
	}
	for _, i := range all {
		if slices.Contains(i.addrs, addr) {
			return i.name
		}
	}
	return ""
}
