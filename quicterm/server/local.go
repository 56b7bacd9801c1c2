//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"

	"github.com/quicterm/quicterm/migrate/carrier/pipe"
	"github.com/quicterm/quicterm/quicterm/account"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A localClient is a client whose carrier a process of this machine passes on, such as one that
// sshd has started for it. It is logged in: the kernel tells the account of the process.
type localClient struct {
	account        *account.Account
	allowed        *auth.Permissions
	client, server netip.AddrPort // of the connection to the machine; not valid if unknown
}

// admitLocal returns the client that an account's process asks a carrier for, or why it gets
// none.
func (s *Server) admitLocal(ctx context.Context, a *account.Account, ask *wire.Ask) (*localClient, error) {
	if err := checkExpired(a); err != nil {
		return nil, err
	}
	l := &localClient{account: a}
	client, err := netip.ParseAddrPort(ask.Client)
	server, err2 := netip.ParseAddrPort(ask.Server)
	if errors.Join(err, err2) == nil {
		l.client, l.server = client, server
	}
	l.allowed, err = s.tokenPermissions(ctx, a, orLoopback(l.client.Addr()), orLoopback(l.server.Addr()))
	return l, err
}

// orLoopback returns an address, or that of this machine if it is not valid.
func orLoopback(a netip.Addr) netip.Addr {
	if !a.IsValid() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return a
}

// ServeLocal serves a client of an account, which needs no login, on a connection until that or
// ctx ends. A server that serves no unix socket, such as one in memory, has its local clients so.
func (s *Server) ServeLocal(ctx context.Context, c net.Conn, uid uint32) error {
	a, err := s.names.LookupID(ctx, uid)
	if err != nil {
		return err
	}
	client, err := s.admitLocal(ctx, a, &wire.Ask{})
	if err != nil {
		return err
	}
	s.serveLocal(ctx, c, client)
	return nil
}

// serveLocal serves a client on the connection to the process that passes its carrier on.
func (s *Server) serveLocal(ctx context.Context, c net.Conn, client *localClient) {
	values := context.WithValue(context.Background(), memberKey{}, new(member))
	values = context.WithValue(values, pendingKey{}, &pending{evicted: context.Background()})
	conn := &localConn{Conn: pipe.New(c), client: client}
	conn.ctx, conn.end = context.WithCancel(context.WithValue(values, localKey{}, client))
	s.countConn(ctx, conn)
}

// localKey is the key of a connection's context for its *localClient.
type localKey struct{}

// A localConn is the connection of a localClient, and its carrier.
type localConn struct {
	*pipe.Conn
	client *localClient
	ctx    context.Context
	end    func()
}

func (c *localConn) Context() context.Context                       { return c.ctx }
func (c *localConn) RemoteAddr() netip.AddrPort                     { return c.client.client }
func (c *localConn) LocalAddr() netip.AddrPort                      { return c.client.server }
func (c *localConn) Carrier(context.Context) (clientCarrier, error) { return c, nil }

// HandshakeComplete returns a closed channel: nothing on a unix socket is a replay.
func (c *localConn) HandshakeComplete() <-chan struct{} { return closed }

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Read implements [carrier.Carrier]. Its error is the end of the connection, unless it is that
// of a deadline.
func (c *localConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.end()
	}
	return n, err
}

// Close implements [carrier.Carrier].
func (c *localConn) Close() error {
	c.end()
	return c.Conn.Close()
}

// Refuse implements [incoming].
func (c *localConn) Refuse() error { return c.Close() }
