package monitor

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"
)

// A daemon that needs a socket for each address closes those of addresses that are gone for good,
// and serves the others.
func TestAddressGone(t *testing.T) {
	taken, err := net.ListenUDP("udp4", ownPort())
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := uint16(taken.LocalAddr().(*net.UDPAddr).Port)
	l, err := openSockets(t, Config{}, netip.AddrPortFrom(netip.IPv4Unspecified(), port).String())
	if err != nil {
		t.Fatal(err)
	}
	stays, goes := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	has := func(addresses ...netip.Addr) {
		l.addresses = func() (local []net.Addr, err error) {
			for _, a := range addresses {
				local = append(local, &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(8, 32)})
			}
			return local, nil
		}
	}
	at := func(a netip.Addr) binding { return binding{"udp4", netip.AddrPortFrom(a, port)} }
	has(stays, goes)
	l.fill()
	has(stays)
	l.fill()
	if l.open[at(stays)] == nil || l.open[at(goes)] == nil {
		t.Fatalf("open: %v; want those of both addresses, one of which is gone for a moment", l.open)
	}
	l.open[at(goes)].seenAt = time.Now().Add(-vanishedTime)

	var network Network = idle{}
	l.server.network.Store(&network)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.serve(ctx) }()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at(goes).address))
		if err == nil {
			c.Close()
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it serves no more: %v", err)
		default:
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("the socket of an address that is gone: %v", err)
		}
	}
	l.mu.Lock()
	if l.open[at(stays)] == nil || l.open[at(goes)] != nil {
		t.Errorf("open: %v", l.open)
	}
	l.mu.Unlock()
	if c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at(stays).address)); err == nil {
		c.Close()
		t.Error("the socket of an address that stays is closed")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
