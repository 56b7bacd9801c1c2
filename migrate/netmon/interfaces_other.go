//go:build !linux

package netmon

import (
	"net"
	"net/netip"
)

// addresses returns the addresses of interfaces, by index.
func addresses(interfaces []net.Interface) (map[int][]netip.Addr, error) {
	found := make(map[int][]netip.Addr)
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err != nil {
			continue // the interface is gone by now
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				if addr, ok := netip.AddrFromSlice(n.IP); ok {
					found[i.Index] = append(found[i.Index], addr.Unmap())
				}
			}
		}
	}
	return found, nil
}
