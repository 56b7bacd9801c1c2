// Package netmon knows how packets leave this machine, and tells when that may
// have changed. It asks the system only: it sends no packet and does not know
// whether a way leads to its end.
package netmon

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// MaxInterfaces is how many interfaces are told at most: more than a person's
// machine has that lead anywhere, and few enough to try each.
const MaxInterfaces = 16

// A Route is how packets to an address leave.
type Route struct {
	// Interface is the name of the interface, or "" if it cannot be told.
	Interface string
	// Source is the local address: never an IPv4 address mapped to IPv6, and
	// without a zone unless it is link-local.
	Source netip.Addr
}

// Lookup returns how packets to an address leave now: as the system chooses, or
// through an interface if one is named. It fails if there is no way: no route,
// no such interface, one that is down or that sockets may not be bound to.
func Lookup(remote netip.AddrPort, iface string) (Route, error) {
	to := remote.Addr().Unmap()
	route, err := lookup(netip.AddrPortFrom(to, remote.Port()), iface)
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // which says to whom, as here
	}
	if err != nil && iface != "" {
		return Route{}, fmt.Errorf("no way to %v through %s: %w", to, iface, err)
	}
	if err != nil {
		return Route{}, fmt.Errorf("no way to %v: %w", to, err)
	}
	return route, nil
}

func lookup(remote netip.AddrPort, iface string) (Route, error) {
	if !remote.IsValid() {
		return Route{}, errors.New("not an address")
	}
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
		return Route{}, errors.New("no address to send from")
	}
	if iface != "" {
		if err := through(remote.Addr(), iface); err != nil {
			return Route{}, err
		}
		return Route{iface, source}, nil
	}
	return Route{cmp.Or(source.Zone(), interfaceTo(remote.Addr()), interfaceWith(source)), source}, nil
}

// Interfaces returns the names of the interfaces that may lead to somewhere: up,
// running, not loopback, and with an address that is valid beyond their link. Of
// more than MaxInterfaces it returns those that the system has had for longest.
func Interfaces() ([]string, error) {
	all, err := links()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, l := range all {
		if l.leads() && len(names) < MaxInterfaces {
			names = append(names, l.name)
		}
	}
	return names, nil
}

// A link is an interface with its addresses.
type link struct {
	name  string
	flags net.Flags
	addrs []netip.Addr
}

// leads reports whether a link may lead to somewhere.
func (l link) leads() bool {
	return l.flags&net.FlagUp != 0 && l.flags&net.FlagRunning != 0 && l.flags&net.FlagLoopback == 0 &&
		slices.ContainsFunc(l.addrs, netip.Addr.IsGlobalUnicast)
}

// links returns all links, sorted by the system's index.
func links() ([]link, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	addrs, err := addresses(interfaces)
	if err != nil {
		return nil, fmt.Errorf("list the addresses: %w", err)
	}
	slices.SortFunc(interfaces, func(a, b net.Interface) int { return cmp.Compare(a.Index, b.Index) })
	all := make([]link, len(interfaces))
	for i, n := range interfaces {
		all[i] = link{n.Name, n.Flags, addrs[n.Index]}
	}
	return all, nil
}

// interfaceWith returns the name of the interface that has an address, or "".
func interfaceWith(addr netip.Addr) string {
	all, err := links()
	if err != nil {
		return ""
	}
	for _, l := range all {
		if slices.Contains(l.addrs, addr) {
			return l.name
		}
	}
	return ""
}
