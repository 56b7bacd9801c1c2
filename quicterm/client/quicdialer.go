//go:build !js

package client

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
)

// A quicDialer makes QUIC connections, each on a socket of its own.
type quicDialer struct {
	network   Network
	tls       *tls.Config
	login     *tls.Config // the same, but it uses no ticket
	datagrams atomic.Bool // the server has taken datagrams
}

func newQUICDialer(network Network, conf *tls.Config) *quicDialer {
	conf = conf.Clone()
	// Dials that race each other share a ticket, so that somebody who sees several of them can
	// tell that they are of one client (RFC 8446, C.4). quic-go sends one ticket a connection,
	// and a dial without one would come back a round trip later.
	conf.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	login := conf.Clone()
	login.ClientSessionCache = ticketStore{conf.ClientSessionCache}
	return &quicDialer{network: network, tls: conf, login: login}
}

// A ticketStore keeps tickets for others. A login without one makes the server prove that it
// has its host key: with a ticket, stolen ticket keys would do.
type ticketStore struct{ tls.ClientSessionCache }

func (ticketStore) Get(string) (*tls.ClientSessionState, bool) { return nil, false }

func (d *quicDialer) listen(to migrate.Candidate) (net.PacketConn, error) {
	return d.network.Listen(interfaceOf(to))
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
		// The ticket's secret comes from a handshake that was safe from quantum computers, and makes this one so.
		// Without another such key exchange, the first flight is one packet that can be lost, not two.
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
