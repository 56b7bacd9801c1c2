//go:build !linux

package netmon

import (
	"errors"
	"net"
	"net/netip"
)

// checkInterface returns why packets to an address cannot leave through an
// interface, although a socket that is bound to it can be connected.
func checkInterface(_ netip.Addr, iface string) error {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return err
	}
	if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagRunning == 0 {
		return errors.New("the interface is down")
	}
	return nil
}

// interfaceTo returns "": here, Lookup finds the interface by its address.
func interfaceTo(netip.Addr) string { return "" }
