//go:build linux || darwin

package server

import (
	"context"
	"time"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// describe answers a Describe, after the silence that it asks for. A client that waits stays: it
// measures how long a NAT keeps a mapping.
func (c *conn) describe(ctx context.Context, req *wire.Describe) error {
	if wait := min(time.Duration(req.Wait)*time.Millisecond, wire.MaxWait); wait > 0 {
		c.stay()
		c.carrier.SetDeadline(time.Now().Add(wait + stayTime))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	description, err := c.server.monitor.Describe(ctx, c.by())
	if err != nil {
		return err
	}
	return wire.Send(c.carrier, description)
}

// stay lets the client ask again for as long as it wants, while what let it in holds.
func (c *conn) stay() {
	if c.stays == nil {
		c.stays = c.guard(privsep.RightTime)
	}
}
