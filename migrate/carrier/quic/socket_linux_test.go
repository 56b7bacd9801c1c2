//go:build !race

package quic

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// Addresses that a socket can send to come back as they are; a name of a zone is for the standard
// library.
func TestAddresses(t *testing.T) {
	v4, v6 := &batch{family: unix.AF_INET}, &batch{family: unix.AF_INET6}
	for _, c := range []struct {
		socket *batch
		to     net.UDPAddr
		want   string // or nothing, if the standard library sends
	}{
		{v4, net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4433}, "192.0.2.1:4433"},
		{v4, net.UDPAddr{IP: net.ParseIP("2001:db8::1"), Port: 4433}, ""},
		{v6, net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4433}, "192.0.2.1:4433"},
		{v6, net.UDPAddr{IP: net.ParseIP("2001:db8::1"), Port: 1}, "[2001:db8::1]:1"},
		{v6, net.UDPAddr{IP: net.ParseIP("fe80::1"), Port: 2, Zone: "3"}, "[fe80::1%3]:2"},
		{v6, net.UDPAddr{IP: net.ParseIP("fe80::1"), Port: 2, Zone: "eth0"}, ""},
		{v6, net.UDPAddr{Port: 2}, ""},
	} {
		var a address
		_, ok := c.socket.encode(&a, &c.to)
		if !ok {
			if c.want != "" {
				t.Errorf("%v cannot be encoded", c.to)
			}
			continue
		}
		if got := udpAddr(&a).String(); got != c.want {
			t.Errorf("%v comes back as %q, want %q", c.to, got, c.want)
		}
	}
}
