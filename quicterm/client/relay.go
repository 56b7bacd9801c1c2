package client

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/quicterm/quicterm/migrate/netmon"
)

// relayAddress stands for the address of a server behind a relay, where one is wanted: candidates have the interface and
// the source of the way to the internet, so that they change with it. Nothing is sent there (RFC 5737).
var relayAddress = netip.MustParseAddrPort("192.0.2.1:443")

// relayed returns the configuration of a client whose server is behind a relay. All is the same as over TCP, except for
// how a connection is made.
func relayed(cfg Config) Config {
	cfg.Network = relayNetwork{cfg.Network, cfg.Relay}
	cfg.NoUDP, cfg.WebHost = true, ""
	cfg.Resolve = func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{relayAddress}, nil }
	return cfg
}

// A relayNetwork leads to one server, through a relay.
type relayNetwork struct {
	Network // of this machine
	relay   func(context.Context) (net.Conn, error)
}

func (n relayNetwork) Listen(string) (net.PacketConn, error) { return nil, errors.ErrUnsupported }

func (n relayNetwork) Dial(ctx context.Context, _ string, _ netip.AddrPort) (net.Conn, error) {
	return n.relay(ctx)
}

// Interfaces returns none: the relay's connection leaves over the one that the system chooses.
func (n relayNetwork) Interfaces() ([]string, error) { return nil, nil }

// Lookup returns how packets leave to the internet, or nothing where that is not known: the relay may be nearer.
func (n relayNetwork) Lookup(remote netip.AddrPort, iface string) (netmon.Route, error) {
	route, err := n.Network.Lookup(remote, iface)
	if err != nil {
		return netmon.Route{}, nil
	}
	return route, nil
}
