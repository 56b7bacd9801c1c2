//go:build linux || darwin

package server

import (
	"context"
	"net"
	"net/netip"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// ServeRelayed implements [monitor.Network]. Before its login, a client has the limits of one that connects by TCP, by its
// caller, and apart from those: a hub can make up callers, and so keep out only those who come through it.
func (s *Server) ServeRelayed(ctx context.Context, c net.Conn, caller privsep.Caller) {
	connCtx, end := context.WithCancelCause(context.Background())
	guest, err := s.admitFrom(connCtx, true, sourceOf(caller), "hub")
	if err != nil {
		end(err)
		c.Close()
		return
	}
	i := s.newTCPIncoming(guest, end, c)
	i.relayed = true
	s.countConn(ctx, i)
}

// sourceOf returns an address that stands for a caller in limits by source, which count a /64 as one and a /48 as some.
// It begins as no address of the internet does (a000::/3), so that it is none by which a client connects.
func sourceOf(caller privsep.Caller) netip.Addr {
	b := [16]byte(caller)
	b[0] = b[0]&0x1f | 0xa0
	return netip.AddrFrom16(b)
}
