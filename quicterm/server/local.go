//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"

	"github.com/quicterm/quicterm/migrate/carrier/pipe"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// ServeLocal implements [monitor.Network].
func (s *Server) ServeLocal(ctx context.Context, c net.Conn, client *privsep.Local) {
	conn := &localConn{Conn: pipe.New(c), client: client}
	guest := newGuest(context.Background(), &pending{evicted: context.Background()}, client)
	conn.ctx, conn.end = context.WithCancelCause(guest)
	s.countConn(ctx, conn)
}

// A localConn is the connection of a monitor.Local, and its carrier.
type localConn struct {
	*pipe.Conn
	client *privsep.Local
	ctx    context.Context
	end    context.CancelCauseFunc
}

func (c *localConn) Context() context.Context                       { return c.ctx }
func (c *localConn) RemoteAddr() netip.AddrPort                     { return c.client.Path.Client }
func (c *localConn) LocalAddr() netip.AddrPort                      { return c.client.Path.Server }
func (c *localConn) Carrier(context.Context) (clientCarrier, error) { return c, nil }

// HandshakeComplete returns a closed channel: nothing on a unix socket is a replay.
func (c *localConn) HandshakeComplete() <-chan struct{} { return closed }

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Read implements [carrier.Carrier]. Its error is the end of the connection, unless it is that of a deadline.
func (c *localConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.end(err)
	}
	return n, err
}

// Close implements [carrier.Carrier].
func (c *localConn) Close() error {
	c.end(net.ErrClosed)
	return c.Conn.Close()
}

// Refuse implements [incoming].
func (c *localConn) Refuse() error { return c.Close() }
