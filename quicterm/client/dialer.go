package client

import (
	"context"
	"net"
	"net/netip"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A dialer makes carriers of one transport to one server. Several goroutines may use it at once.
type dialer interface {
	// dial makes a carrier for a login: one that can export keys, to a server that proves its
	// identity anew, or one that needs no login. It blocks until the server has answered, or the
	// context ends. The caller closes the carrier.
	dial(ctx context.Context, to migrate.Candidate) (carrier.Carrier, error)
	// redial is like dial, for a session that exists. It may return before the server has
	// answered: an attacker who records what is sent then can replay it to the server.
	redial(ctx context.Context, to migrate.Candidate) (carrier.Carrier, error)
	// failed takes the error with which a dial or a carrier has ended, so that the next dial
	// does not fail for the same reason.
	failed(err error)
	// refused reports whether a dial failed or a carrier has ended because the server has too many clients.
	refused(err error) bool
}

// A Network is the part of the machine that leads to the server.
type Network interface {
	// Listen opens a UDP socket. Its packets leave over the interface, or over one that the
	// system chooses if the name is empty.
	Listen(iface string) (net.PacketConn, error)
	// Dial makes a TCP connection. Its packets leave as those of Listen do.
	Dial(ctx context.Context, iface string, remote netip.AddrPort) (net.Conn, error)
	// Interfaces returns the names of the interfaces that may lead to the server.
	Interfaces() ([]string, error)
	// Lookup returns how packets to an address leave, over the interface or over one that the system chooses.
	Lookup(remote netip.AddrPort, iface string) (netmon.Route, error)
	// Watch calls f on each change of the network until the context ends. The function remote
	// returns the server's address.
	Watch(ctx context.Context, remote func() netip.AddrPort, f func(netmon.Event)) error
}

func newDialers(cfg Config) map[migrate.Transport]dialer {
	conf := auth.VerifyServer(cfg.CheckHost)
	conf.ServerName = auth.ServerName(cfg.KeyTypes)
	conf.NextProtos = []string{wire.ALPN}
	dialers := map[migrate.Transport]dialer{migrate.TCP: &tcpDialer{network: cfg.Network, tls: conf, webHost: cfg.WebHost}}
	if !cfg.NoUDP {
		addQUIC(dialers, cfg.Network, conf)
	}
	if cfg.Tunnel != nil {
		dialers[migrate.SSH] = tunnelDialer{cfg.Tunnel}
	}
	return dialers
}

// interfaceOf returns the interface to which the socket for a candidate is bound, or "".
func interfaceOf(to migrate.Candidate) string {
	if to.Bound {
		return to.Interface
	}
	return ""
}
