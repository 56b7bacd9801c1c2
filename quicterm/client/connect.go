package client

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
)

// maxDials bounds how often an address is dialed at a time. All of five handshakes fail that lose a third of their
// packets for 4 s in one of some thousand cases.
const maxDials = 5

// errNoAnswer is why a server is not dialed any longer.
var errNoAnswer = fmt.Errorf("no answer within %v", connectTime)

// connect dials the server's addresses and returns the carrier to the first that answers.
func (c *Client) connect(ctx context.Context, t migrate.Transport, addrs []netip.AddrPort) (carrier.Carrier, error) {
	if len(addrs) == 0 {
		return nil, errors.New("the server has no address")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime, errNoAnswer)
	defer cancel()
	type result struct {
		addr netip.AddrPort
		conn carrier.Carrier
		err  error
	}
	rounds := 1
	if t == migrate.QUIC {
		rounds = maxDials
	}
	dials := slices.Repeat(addrs, rounds) // that are not started yet
	results := make(chan result)
	start := func(addr netip.AddrPort) {
		go func() {
			conn, err := c.dialers[t].dial(ctx, migrate.Candidate{Transport: t, Remote: addr})
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			results <- result{addr, conn, err}
		}()
	}
	var first carrier.Carrier
	errs := make(map[netip.AddrPort]error) // of the addresses that have failed
	started, running := 0, 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for first == nil && (len(dials) > 0 || running > 0) {
		var startNext <-chan time.Time
		if len(dials) > 0 {
			startNext = timer.C
		}
		select {
		case <-startNext:
			start(dials[0])
			dials = dials[1:]
			running++
			if started++; started < len(addrs) {
				timer.Reset(nextAddress)
			} else {
				timer.Reset(nextDial)
			}
		case r := <-results:
			running--
			if r.err == nil {
				first = r.conn
				break
			}
			if errs[r.addr] == nil {
				errs[r.addr] = fmt.Errorf("%v: %w", r.addr, r.err)
			}
			dials = slices.DeleteFunc(dials, func(a netip.AddrPort) bool { return a == r.addr || ctx.Err() != nil })
			if started < len(addrs) {
				timer.Reset(0)
			}
		}
	}
	cancel()
	for ; running > 0; running-- {
		if r := <-results; r.err == nil {
			r.conn.Close()
		}
	}
	if first == nil {
		var failed error
		for _, a := range addrs {
			failed = errors.Join(failed, errs[a])
			delete(errs, a)
		}
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
