package client

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
)

// nextAddress is how long an address has to answer before the next one is dialed as well
// (RFC 8305, 5).
const nextAddress = 250 * time.Millisecond

// connect dials the server's addresses and returns the carrier to the first that answers.
func (c *Client) connect(ctx context.Context, t migrate.Transport, addrs []netip.AddrPort) (carrier.Carrier, error) {
	if len(addrs) == 0 {
		return nil, errors.New("the server has no address")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn carrier.Carrier
		err  error
	}
	results := make(chan result)
	start := func(addr netip.AddrPort) {
		go func() {
			conn, err := c.dialers[t].dial(ctx, migrate.Candidate{Transport: t, Remote: addr})
			if err != nil {
				err = fmt.Errorf("%v: %w", addr, err)
			}
			results <- result{conn, err}
		}()
	}
	var first carrier.Carrier
	var failed error
	next, running := 0, 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for first == nil && (next < len(addrs) || running > 0) {
		var startNext <-chan time.Time
		if next < len(addrs) {
			startNext = timer.C
		}
		select {
		case <-startNext:
			start(addrs[next])
			next++
			running++
			timer.Reset(nextAddress)
		case r := <-results:
			running--
			if r.err == nil {
				first = r.conn
				break
			}
			failed = errors.Join(failed, r.err)
			timer.Reset(0)
		}
	}
	cancel()
	for ; running > 0; running-- {
		if r := <-results; r.err == nil {
			r.conn.Close()
		}
	}
	if first == nil {
		return nil, failed
	}
	return first, nil
}

// connectError returns the one reason for which no address could be connected to: what is
// wrong with the host's key comes first, and otherwise the server is unreachable.
func (c *Client) connectError(t migrate.Transport, err error) error {
	var unknown *auth.UnknownHostError
	var changed *auth.ChangedHostError
	var revoked *auth.RevokedHostError
	switch {
	case errors.As(err, &changed):
		return changed
	case errors.As(err, &revoked):
		return revoked
	case errors.As(err, &unknown):
		return unknown
	case c.dialers[t].refused(err):
		return ErrBusy
	}
	return &UnreachableError{err}
}
