//go:build linux || darwin

package client

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/migrate/netmon"
)

// Whatever the name resolves to, the address that works stays among those that are tried.
func TestAddressThatWorksIsKept(t *testing.T) {
	addr := func(i byte) netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, i}), 4433) }
	works := addr(1)
	c := &candidates{addrs: []netip.AddrPort{works}}
	log := slog.New(slog.DiscardHandler)
	for i := byte(10); i < 100; i += 8 {
		var named []netip.AddrPort
		for j := range byte(8) {
			named = append(named, addr(i+j))
		}
		if !c.endResolve(resolved{addrs: named}, works, log) {
			t.Errorf("other addresses are not reported as a change: %v", c.addrs)
		}
		if !slices.Contains(c.addrs, works) || len(c.addrs) > maxAddresses+1 {
			t.Fatalf("tries %v, want up to %d with %v", c.addrs, maxAddresses+1, works)
		}
		slices.Reverse(named[:maxAddresses])
		if c.endResolve(resolved{addrs: named}, works, log) {
			t.Error("the same in another order counts as a change")
		}
	}
}

// Packets to this machine itself leave over no interface, so no socket is bound to one.
func TestNoInterfaceToThisMachine(t *testing.T) {
	here := netip.MustParseAddrPort("10.0.0.2:4433")
	c := &candidates{client: &Client{network: bindable{}}, addrs: []netip.AddrPort{netip.MustParseAddrPort("[::1]:4433"), here, serverAddr}}
	c.refresh(slog.New(slog.DiscardHandler))
	for _, candidate := range c.list {
		if candidate.Bound != (candidate.Remote == serverAddr && candidate.Interface != "lo") {
			t.Errorf("there is a candidate %+v", candidate)
		}
	}
	if len(c.list) != 2*5 {
		t.Errorf("%d candidates, want one to each address of this machine and three to another, by each transport", len(c.list))
	}
}

// bindable is a machine with a route to every address over each interface, as Linux has for
// bound sockets.
type bindable struct{ Network }

func (bindable) Interfaces() ([]string, error) { return []string{"wlan0", "wwan0"}, nil }
func (bindable) Lookup(remote netip.AddrPort, iface string) (netmon.Route, error) {
	if iface == "" {
		source := remote.Addr()
		if remote == serverAddr {
			source = netip.MustParseAddr("10.0.0.2")
		}
		return netmon.Route{Interface: "lo", Source: source}, nil
	}
	return netmon.Route{Interface: iface, Source: netip.MustParseAddr("10.0.0.2")}, nil
}

// unbindable is a machine on which the client may not bind sockets to an interface.
type unbindable struct{ Network }

func (unbindable) Interfaces() ([]string, error) { return []string{"wlan0", "wwan0"}, nil }
func (unbindable) Lookup(_ netip.AddrPort, iface string) (netmon.Route, error) {
	if iface != "" {
		return netmon.Route{}, errors.Join(errors.New(iface), netmon.ErrBind)
	}
	return netmon.Route{Interface: "wlan0", Source: netip.MustParseAddr("10.0.0.2")}, nil
}

// What the machine does not allow is logged once.
func TestLogInterfacesOnce(t *testing.T) {
	var log strings.Builder
	c := &candidates{client: &Client{network: unbindable{}}, addrs: []netip.AddrPort{serverAddr}}
	for range 10 {
		c.refresh(slog.New(slog.NewTextHandler(&log, nil)))
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || len(c.list) != 2 {
		t.Errorf("%d lines, %d candidates, want one, and one by each transport:\n%s", n, len(c.list), log.String())
	}
}
