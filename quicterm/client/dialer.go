package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A dialer makes carriers of one kind to one server. Several goroutines may use it at once.
type dialer interface {
	// dial makes a carrier for a login: one that can export keys, to a server that proves its
	// identity anew. It blocks until the server has answered, or the context ends. The caller
	// closes the carrier.
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
	// Interfaces returns the names of the interfaces that may lead to the server.
	Interfaces() ([]string, error)
	// Lookup returns how packets to an address leave, over the interface or over one that the
	// system chooses.
	Lookup(remote netip.AddrPort, iface string) (netmon.Route, error)
	// Watch calls f on each change of the network until the context ends. The function remote
	// returns the server's address.
	Watch(ctx context.Context, remote func() netip.AddrPort, f func(netmon.Event)) error
}

// system is the network of this machine.
type system struct{}

func (system) Listen(iface string) (net.PacketConn, error) { return quic.ListenUDP(iface) }
func (system) Interfaces() ([]string, error)               { return netmon.Interfaces() }
func (system) Lookup(remote netip.AddrPort, iface string) (netmon.Route, error) {
	return netmon.Lookup(remote, iface)
}
func (system) Watch(ctx context.Context, remote func() netip.AddrPort, f func(netmon.Event)) error {
	return netmon.Watch(ctx, remote, f)
}

// A quicDialer makes QUIC connections, each on a socket of its own.
type quicDialer struct {
	network   Network
	tls       *tls.Config
	login     *tls.Config // the same, but it uses no ticket
	datagrams atomic.Bool // the server has taken datagrams
}

func newQUICDialer(cfg Config) *quicDialer {
	conf := auth.VerifyServer(cfg.CheckHost)
	conf.ServerName = auth.ServerName(cfg.KeyTypes)
	conf.NextProtos = []string{wire.ALPN}
	// Dials that race each other share a ticket, so that somebody who sees several of them can
	// tell that they are of one client (RFC 8446, C.4). quic-go sends one ticket a connection,
	// and a dial without one would come back a round trip later.
	conf.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	login := conf.Clone()
	login.ClientSessionCache = ticketStore{conf.ClientSessionCache}
	return &quicDialer{network: cfg.Network, tls: conf, login: login}
}

// A ticketStore keeps tickets for others. A login without one makes the server prove that it
// has its host key: with a ticket, stolen ticket keys would do.
type ticketStore struct{ tls.ClientSessionCache }

func (ticketStore) Get(string) (*tls.ClientSessionState, bool) { return nil, false }

func (d *quicDialer) listen(to migrate.Candidate) (net.PacketConn, error) {
	if to.Bound {
		return d.network.Listen(to.Interface)
	}
	return d.network.Listen("")
}

func (d *quicDialer) dial(ctx context.Context, to migrate.Candidate) (carrier.Carrier, error) {
	socket, err := d.listen(to)
	if err != nil {
		return nil, err
	}
	conn, err := quic.Dial(ctx, socket, to.Remote, d.login)
	if err != nil {
		return nil, err
	}
	d.datagrams.Store(conn.Datagrams())
	return conn, nil
}

func (d *quicDialer) redial(ctx context.Context, to migrate.Candidate) (carrier.Carrier, error) {
	if !d.datagrams.Load() {
		return d.dial(ctx, to)
	}
	socket, err := d.listen(to)
	if err != nil {
		return nil, err
	}
	conf := d.tls
	if ticket, _ := conf.ClientSessionCache.Get(conf.ServerName); ticket != nil {
		// The ticket's secret comes from a handshake that was safe from quantum computers, and
		// makes this one so. Without another such key exchange, the first flight is one packet
		// that can be lost, not two.
		conf = conf.Clone()
		conf.CurvePreferences = []tls.CurveID{tls.X25519}
	}
	conn, err := quic.DialEarly(ctx, socket, to.Remote, conf)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// failed drops the TLS ticket if that is why the server rejected a connection.
func (d *quicDialer) failed(err error) {
	if quic.TicketRejected(err) {
		d.tls.ClientSessionCache.Put(d.tls.ServerName, nil)
	}
}

func (d *quicDialer) refused(err error) bool { return quic.Refused(err) }
