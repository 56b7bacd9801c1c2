//go:build linux || darwin

package server

import (
	"context"
	"time"

	"github.com/quicterm/quicterm/quicterm/systemd"
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
	description, err := c.description(ctx)
	if err != nil {
		return err
	}
	return wire.Send(c.carrier, description)
}

// description returns what the client may know of this server.
func (c *conn) description(ctx context.Context) (*wire.Description, error) {
	end, err := c.server.accounts.of(c.account.UID).begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	sessions := c.server.sessions(ctx, c.account.UID, c.open())
	d := &wire.Description{
		Software:    c.server.software,
		Time:        time.Now().UnixMilli(),
		Client:      c.from(),
		Proof:       c.proof,
		Sessions:    uint32(len(sessions)),
		MaxSessions: uint32(c.server.settings().MaxSessionsPerUser),
		MaxMemory:   uint64(c.server.memory.limit),
		Granted:     c.server.granted,
	}
	for _, e := range sessions {
		d.Memory += e.state.Memory
	}
	if d.Logout = wire.LogoutKeeps; systemd.EndsAtLogout(ctx) != "" {
		d.Logout = wire.LogoutEnds
	}
	return d, nil
}

// stay lets the client ask again for as long as it wants, while what let it in holds.
func (c *conn) stay() {
	if c.stays == nil {
		c.stays = c.guard(c.admission(c.open()), rightTime)
	}
}
