package netmon

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// A Route is how packets to an address leave.
type Route struct {
	// Interface is the name of the interface, or "" if the system does not say.
	Interface string
	// Source is the local address: never an IPv4 address mapped to IPv6, and without a zone unless it is link-local.
	Source netip.Addr
}

// Lookup returns how packets to an address leave now: as the system chooses, or through the named interface. It fails
// if there is no route, or if the interface does not exist, is down, or does not accept bound sockets.
func Lookup(remote netip.AddrPort, iface string) (Route, error) {
	to := remote.Addr().Unmap()
	route, err := lookup(netip.AddrPortFrom(to, remote.Port()), iface)
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // the OpError names the address again
	}
	if err != nil && iface != "" {
		return Route{}, fmt.Errorf("no route to %v through %s: %w", to, iface, err)
	}
	if err != nil {
		return Route{}, fmt.Errorf("no route to %v: %w", to, err)
	}
	return route, nil
}

func lookup(remote netip.AddrPort, iface string) (Route, error) {
	if !remote.IsValid() {
		return Route{}, errors.New("not an address")
	}
	// Connecting a UDP socket chooses a route, and sends nothing.
	dialer := net.Dialer{Control: Bind(iface)}
	conn, err := dialer.Dial("udp", remote.String())
	if err != nil {
		return Route{}, err
	}
	defer conn.Close()
	source := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	if !source.IsLinkLocalUnicast() {
		source = source.WithZone("")
	}
	if source.IsUnspecified() {
		return Route{}, errors.New("no local address")
	}
	if iface != "" {
		if err := checkInterface(remote.Addr(), iface); err != nil {
			return Route{}, err
		}
		return Route{iface, source}, nil
	}
	return Route{cmp.Or(source.Zone(), interfaceTo(remote.Addr()), interfaceWith(source)), source}, nil
}
