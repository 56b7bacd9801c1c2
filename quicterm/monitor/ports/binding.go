//go:build linux || darwin

package ports

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/machine/systemd"
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

// family returns "4" or "6", or nothing for both.
func (b binding) family() string { return b.network[3:] }

// beside returns the binding of the other protocol at the same address.
func (b binding) beside() binding {
	if b.protocol() == "udp" {
		return binding{"tcp" + b.family(), b.address}
	}
	return binding{"udp" + b.family(), b.address}
}

// listen opens a socket, of TCP one without Multipath TCP, which net.Listen would allow.
func (b binding) listen() (socket, error) {
	at := b.address.String()
	if b.family() == "" {
		at = ":" + strconv.Itoa(int(b.address.Port())) // also where there is no IPv6
	}
	if b.protocol() == "tcp" {
		var lc net.ListenConfig
		lc.SetMultipathTCP(false)
		l, err := lc.Listen(context.Background(), b.network, at)
		if err != nil {
			return nil, err
		}
		return l.(*net.TCPListener), nil
	}
	c, err := net.ListenPacket(b.network, at)
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}

// withoutIPv6 returns what a socket for all addresses is bound to on a machine without IPv6.
func (b binding) withoutIPv6() binding {
	if b.family() != "" {
		return b
	}
	return binding{b.network + "4", netip.AddrPortFrom(netip.IPv4Unspecified(), b.address.Port())}
}

// keptName returns the name of a socket at the service manager, which may have no colon.
func (b binding) keptName() string {
	return "qtd-" + b.network + "-" + strings.ReplaceAll(b.address.String(), ":", "_")
}

// udpAt returns the binding of a UDP socket at an address. That for all addresses of IPv6 means those of IPv4 as well.
func udpAt(address netip.AddrPort) binding {
	ip := address.Addr().Unmap()
	switch {
	case ip.Is4():
		return binding{"udp4", netip.AddrPortFrom(ip, address.Port())}
	case ip.IsValid() && !ip.IsUnspecified():
		return binding{"udp6", netip.AddrPortFrom(ip, address.Port())}
	}
	return binding{"udp", netip.AddrPortFrom(netip.IPv6Unspecified(), address.Port())}
}

func bindingOf(c socket) (b binding) {
	switch c := c.(type) {
	case *net.UDPConn:
		b = udpAt(c.LocalAddr().(*net.UDPAddr).AddrPort())
	case *net.TCPListener:
		b = udpAt(c.Addr().(*net.TCPAddr).AddrPort()).beside()
	}
	if b.family() == "" && onlyIPv6(c) {
		b.network += "6"
	}
	return b
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

// reachable returns the address at which programs of this machine reach a socket.
func (b binding) reachable() netip.AddrPort {
	if !b.address.Addr().IsUnspecified() {
		return b.address
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if b.family() == "6" {
		loopback = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(loopback, b.address.Port())
}
