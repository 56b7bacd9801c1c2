//go:build linux || darwin

package monitor

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/machine/systemd"
)

// A granted daemon takes the first free port of the range that mosh uses. The usual port
// is for root's daemon: a granted one must not keep that out.
const (
	firstGrantedPort = 60000
	lastGrantedPort  = 61000
)

// A socket is a *net.UDPConn or a *net.TCPListener.
type socket = systemd.Conn

// A binding is what a socket is bound to. The network is "udp" or "tcp" for all addresses of
// both families, else "udp4", "udp6", "tcp4" or "tcp6".
type binding struct {
	network string
	address netip.AddrPort
}

// protocol returns "udp" or "tcp".
func (b binding) protocol() string { return b.network[:3] }

// beside returns the binding of the other protocol at the same address.
func (b binding) beside() binding {
	other := map[string]string{"udp": "tcp", "tcp": "udp"}
	return binding{other[b.protocol()] + b.network[3:], b.address}
}

// listen opens a socket.
func (b binding) listen() (socket, error) {
	ip := net.IP(b.address.Addr().AsSlice())
	if len(b.network) == len("udp") {
		ip = nil // also where there is no IPv6
	}
	zone, port := b.address.Addr().Zone(), int(b.address.Port())
	if b.protocol() == "tcp" {
		return listened(net.ListenTCP(b.network, &net.TCPAddr{IP: ip, Port: port, Zone: zone}))
	}
	return listened(net.ListenUDP(b.network, &net.UDPAddr{IP: ip, Port: port, Zone: zone}))
}

// listened returns no socket, rather than a nil one, with an error.
func listened[S socket](c S, err error) (socket, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// withoutIPv6 returns what a socket for all addresses is bound to on a machine without IPv6.
func (b binding) withoutIPv6() binding {
	if len(b.network) != len("udp") {
		return b
	}
	return binding{b.network + "4", netip.AddrPortFrom(netip.IPv4Unspecified(), b.address.Port())}
}

// keptPrefix begins the names of sockets that this daemon keeps with the service manager.
const keptPrefix = "qtd-"

// keptName returns the name of a socket at the service manager, which may have no colon.
func (b binding) keptName() string {
	return keptPrefix + b.network + "-" + strings.ReplaceAll(b.address.String(), ":", "_")
}

// bindingOf returns what a socket is bound to.
func bindingOf(c socket) binding {
	var protocol string
	var address netip.AddrPort
	switch c := c.(type) {
	case *net.UDPConn:
		protocol, address = "udp", c.LocalAddr().(*net.UDPAddr).AddrPort()
	case *net.TCPListener:
		protocol, address = "tcp", c.Addr().(*net.TCPAddr).AddrPort()
	}
	address = netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
	switch {
	case address.Addr().Is4():
		return binding{protocol + "4", address}
	case address.Addr().IsUnspecified() && !onlyIPv6(c):
		return binding{protocol, address}
	}
	return binding{protocol + "6", address}
}

// onlyIPv6 reports whether a socket of IPv6 does not serve IPv4.
func onlyIPv6(c socket) bool {
	only := 1
	if raw, err := c.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			only, _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY)
		})
	}
	return only != 0
}

// listenGranted opens the sockets of a granted daemon at one of the given addresses. That for all
// addresses of IPv6 means those of IPv4 as well.
func listenGranted(ips ...netip.Addr) (udp, tcp socket, err error) {
	for port := firstGrantedPort; port <= lastGrantedPort; port++ {
		for _, ip := range ips {
			b := binding{"udp", netip.AddrPortFrom(ip, uint16(port))}
			switch {
			case ip.Is4():
				b.network = "udp4"
			case !ip.IsUnspecified():
				b.network = "udp6"
			}
			if udp, err = b.listen(); err != nil {
				continue
			}
			if tcp, err = b.beside().listen(); err == nil {
				return udp, tcp, nil
			}
			udp.Close()
		}
	}
	return nil, nil, fmt.Errorf("no port from %d to %d is free: %w", firstGrantedPort, lastGrantedPort, err)
}
