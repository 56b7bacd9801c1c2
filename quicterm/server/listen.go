//go:build linux || darwin

package server

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// A granted daemon takes the first free port of the range that mosh uses. The usual port
// is for root's daemon: a granted one must not keep that out.
const (
	firstGrantedPort = 60000
	lastGrantedPort  = 61000
)

// A binding is what a UDP socket is bound to. The network is "udp" for all addresses of
// both families, else "udp4" or "udp6".
type binding struct {
	network string
	address netip.AddrPort
}

// isOf reports whether a socket is one for all addresses of a family, or for one of them.
func (b binding) isOf(all binding) bool {
	return b.network == all.network && b.address.Port() == all.address.Port()
}

// keptPrefix begins the names of sockets that this daemon keeps with the service manager.
const keptPrefix = "qtd-"

// keptName returns the name of a socket at the service manager, which may have no colon.
func (b binding) keptName() string {
	return keptPrefix + b.network + "-" + strings.ReplaceAll(b.address.String(), ":", "_")
}

// bindingOf returns what a socket is bound to.
func bindingOf(c *net.UDPConn) binding {
	address := c.LocalAddr().(*net.UDPAddr).AddrPort()
	address = netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
	switch {
	case address.Addr().Is4():
		return binding{"udp4", address}
	case address.Addr().IsUnspecified() && !onlyIPv6(c):
		return binding{"udp", address}
	}
	return binding{"udp6", address}
}

// onlyIPv6 reports whether a socket of IPv6 does not serve IPv4.
func onlyIPv6(c *net.UDPConn) bool {
	only := 1
	if raw, err := c.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			only, _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY)
		})
	}
	return only != 0
}

// listenGranted opens the socket of a granted daemon at one of the given addresses. That for all
// addresses of IPv6 means those of IPv4 as well.
func listenGranted(ips ...net.IP) (*net.UDPConn, error) {
	var failure error
	for port := firstGrantedPort; port <= lastGrantedPort; port++ {
		for _, ip := range ips {
			addr := &net.UDPAddr{IP: ip, Port: port}
			if ip.IsUnspecified() {
				addr.IP = nil // also where there is no IPv6
			}
			c, err := net.ListenUDP("udp", addr)
			if err == nil {
				return c, nil
			}
			failure = err
		}
	}
	return nil, fmt.Errorf("no free UDP port from %d to %d: %w", firstGrantedPort, lastGrantedPort, failure)
}
