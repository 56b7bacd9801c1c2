//go:build !linux

package netmon

import (
	"errors"
	"net"
	"net/netip"
)

// through returns why packets to an address cannot leave through an interface
// although a socket that is bound to it can be connected.
func through(_ netip.Addr, iface string) error {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return err
	}
	if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagRunning == 0 {
		return errors.New("it is down")
	}
	return nil
}

// interfaceTo returns "": the interface is found by its address.
func interfaceTo(netip.Addr) string { return "" }

// addresses returns the addresses of interfaces by index.
func addresses(interfaces []net.Interface) (map[int][]netip.Addr, error) {
	found := make(map[int][]netip.Addr)
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err != nil {
			continue // it has gone meanwhile
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
