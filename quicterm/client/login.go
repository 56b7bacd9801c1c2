package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// nextAddress is how long an address has to answer before the next one is dialed as well
// (RFC 8305, 5).
const nextAddress = 250 * time.Millisecond

// connect dials the server's addresses and returns the carrier to the first that answers.
func (c *Client) connect(ctx context.Context) (carrier.Carrier, error) {
	addrs, err := c.cfg.Resolve(ctx)
	if err != nil {
		return nil, err
	}
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
			conn, err := c.dialer.dial(ctx, migrate.Candidate{Remote: addr})
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

// login connects, proves the user and sends a request. It returns the answer, and the
// carrier on which everything behind the answer comes. The caller closes it.
func (c *Client) login(ctx context.Context, request wire.Message) (carrier.Carrier, wire.Message, error) {
	if c.cfg.Token == nil && len(c.cfg.Keys) == 0 {
		return nil, wire.Message{}, ErrNoKeys
	}
	conn, err := c.connect(ctx)
	if ctx.Err() != nil {
		if err == nil {
			conn.Close()
		}
		return nil, wire.Message{}, context.Cause(ctx)
	}
	if err != nil {
		return nil, wire.Message{}, c.connectError(err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer closeIfSilent(conn)()
	answer, err := c.authenticate(conn, request)
	if err == nil && answer.Type == wire.TypeError {
		refusal := new(wire.Error)
		err = refusal
		if invalid := answer.Decode(refusal); invalid != nil {
			err = invalid
		}
	}
	if brokenOff := new(BrokenOffError); errors.As(err, &brokenOff) && c.dialer.refused(brokenOff.Err) {
		brokenOff.Err = ErrBusy
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, wire.Message{}, err
	}
	return conn, answer, nil
}

// connectError returns the one reason for which no address could be connected to: what is
// wrong with the host's key comes first, and otherwise the server is unreachable.
func (c *Client) connectError(err error) error {
	var unknown *auth.UnknownHostError
	var changed *auth.ChangedHostError
	var revoked *auth.RevokedHostError
	var refused *auth.RefusedHostError
	switch {
	case errors.As(err, &changed):
		return changed
	case errors.As(err, &revoked):
		return revoked
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &unknown):
		return unknown
	case c.dialer.refused(err):
		return ErrBusy
	}
	return &UnreachableError{err}
}

// authenticate sends everything that is probably needed at once: in the best case the first
// thing that comes back is the answer to the request.
func (c *Client) authenticate(conn carrier.Carrier, request wire.Message) (wire.Message, error) {
	keys, left := c.offerable(c.cfg.Keys)
	hello := func() *wire.Hello {
		h := &wire.Hello{Software: c.cfg.Software, User: c.cfg.User, More: len(left) > 0}
		for _, k := range keys {
			h.Keys = append(h.Keys, k.Public.Marshal())
		}
		return h
	}
	tried := make(map[string]bool)
	answer := func(k *auth.UserKey) (*wire.Answer, error) {
		blob := k.Public.Marshal()
		tried[string(blob)] = true
		exporter, ok := conn.(carrier.KeyExporter)
		if !ok {
			return nil, errors.New("a signature needs an encrypted connection")
		}
		signature, err := k.Sign(exporter, c.cfg.User)
		return &wire.Answer{Key: blob, Signature: signature}, err
	}
	var flight []byte
	add := func(v wire.Body) error {
		m, err := wire.New(v)
		flight = m.Append(flight)
		return err
	}
	err := add(hello())
	if c.cfg.Token != nil {
		err = errors.Join(err, add(&wire.Token{Token: c.cfg.Token}))
	} else if keys[0].Silent() {
		if a, signErr := answer(keys[0]); signErr == nil {
			err = errors.Join(err, add(a))
		}
	}
	if err != nil {
		return wire.Message{}, err
	}
	if _, err := conn.Write(request.Append(flight)); err != nil {
		return wire.Message{}, &BrokenOffError{err}
	}
	var failed error
	for {
		m, err := wire.Read(conn, wire.MaxMessage)
		if err != nil {
			return m, &BrokenOffError{err}
		}
		if m.Type == wire.TypeDenied {
			return m, &DeniedError{failed}
		}
		if m.Type != wire.TypeOffer {
			return m, nil
		}
		var offer wire.Offer
		if err := m.Decode(&offer); err != nil {
			return m, err
		}
		answered := false
		for _, k := range keys {
			blob := k.Public.Marshal()
			offered := slices.ContainsFunc(offer.Keys, func(o []byte) bool { return bytes.Equal(o, blob) })
			if tried[string(blob)] || !offered {
				continue
			}
			a, err := answer(k)
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			if err := wire.Send(conn, a); err != nil {
				return m, &BrokenOffError{err}
			}
			answered = true
			break
		}
		switch {
		case answered:
		case len(left) == 0:
			return m, &DeniedError{failed}
		default:
			keys, left = c.offerable(left)
			if err := wire.Send(conn, hello()); err != nil {
				return m, err
			}
		}
	}
}

// offerable returns the first keys to offer to the server, and those that are left.
func (c *Client) offerable(keys []*auth.UserKey) (first, left []*auth.UserKey) {
	if c.cfg.OneByOne {
		n := min(len(keys), 1)
		return keys[:n], keys[n:]
	}
	return keys[:min(len(keys), wire.MaxKeys)], nil
}
