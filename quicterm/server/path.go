//go:build linux || darwin

package server

import (
	"context"
	"net/netip"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// path returns the addresses of the connection as it is now.
func (c *conn) path() privsep.Path {
	return privsep.Path{Client: c.incoming.RemoteAddr(), Server: c.carrier.LocalAddr(), Web: kindOf(c.incoming) == kindWeb}
}

// places returns the addresses of the connection as it is now, without ports.
func (c *conn) places() [2]netip.Addr {
	path := c.path()
	return [2]netip.Addr{path.Client.Addr(), path.Server.Addr()}
}

// run looks at all connections every sampleInterval until ctx ends.
func (a *attachments) run(ctx context.Context) error {
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for _, l := range a.all() {
			a.look(l, true)
		}
	}
}

// look counts what has happened on a connection since it was looked at last.
func (a *attachments) look(l *link, live bool) {
	address := l.conn.incoming.RemoteAddr()
	var stats carrier.Stats
	if reader, ok := l.conn.carrier.(carrier.StatsReader); ok {
		stats = reader.Stats()
	}
	c := a.server.counts
	if live && stats.RTT > 0 {
		c.Observe("quicterm_rtt_seconds", stats.RTT.Seconds())
	}
	a.mu.Lock()
	if l.kind == kindQUIC {
		c.Add("quicterm_packets_sent_total", float64(stats.PacketsSent-l.sent))
		c.Add("quicterm_packets_lost_total", float64(stats.PacketsLost-min(l.lost, stats.PacketsLost)))
		l.sent, l.lost = stats.PacketsSent, max(l.lost, stats.PacketsLost)
	}
	moved := live && address != l.address && address.IsValid()
	if moved {
		l.address, l.attachment.address = address, address.Addr()
	}
	a.mu.Unlock()
	if moved {
		c.count("quicterm_moves_total")
		l.log().Info("client has another address", "event", "move")
	}
}
