package client

import (
	"context"
	"errors"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Candidates returns what a session would dial now: each address of the server, by UDP and TCP, over
// each interface that leads there.
func (c *Client) Candidates(ctx context.Context) ([]Candidate, error) {
	addrs, err := c.cfg.Resolve(ctx)
	if err != nil {
		return nil, err
	}
	all := candidates{client: c, addrs: addrs[:min(len(addrs), maxAddresses)]}
	all.refresh(c.cfg.Log)
	var list []Candidate
	for _, to := range all.list {
		if to.Transport != migrate.SSH {
			list = append(list, publicCandidate(to))
		}
	}
	return list, nil
}

// Reach dials a candidate, without a login, and returns the time of a round trip. Its error is an [UnreachableError]
// if nothing answers, [ErrBusy], or says what is wrong with the host's key.
func (c *Client) Reach(ctx context.Context, to Candidate) (rtt time.Duration, err error) {
	d := c.dialers[migrate.Transport(to.Transport)]
	dial := d.dial
	if d, ok := d.(*tcpDialer); ok {
		dial = d.direct
	}
	return c.measure(migrate.Transport(to.Transport), func() (carrier.Carrier, error) { return dial(ctx, to.internal()) })
}

// measure makes a carrier, and returns the time of a round trip on it.
func (c *Client) measure(t migrate.Transport, dial func() (carrier.Carrier, error)) (rtt time.Duration, err error) {
	began := time.Now()
	conn, err := dial()
	if err != nil {
		return 0, c.connectError(t, err)
	}
	defer conn.Close()
	if s, ok := conn.(carrier.StatsReader); ok {
		rtt = s.Stats().RTT
	}
	if rtt == 0 {
		rtt = time.Since(began) / 2 // what the handshake of TLS over TCP takes
	}
	return rtt, nil
}

// Find reports whether a daemon answers at the server's addresses, by UDP or TCP, as soon as a login would know that.
// It logs in to none: its error is an [UnreachableError] if nothing answers.
func (c *Client) Find(ctx context.Context) error {
	addrs, err := c.cfg.Resolve(ctx)
	if err != nil {
		return &UnreachableError{err}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	transports := []migrate.Transport{migrate.QUIC, migrate.TCP}
	errs := make(chan error, len(transports))
	for _, t := range transports {
		go func() {
			conn, err := c.connect(ctx, t, addrs)
			if err == nil {
				conn.Close()
			} else {
				err = c.connectError(t, err)
			}
			errs <- err
		}()
	}
	for range transports {
		if err = <-errs; !errors.As(err, new(*UnreachableError)) {
			return err
		}
	}
	return err
}

// Describe logs in and returns what the server says of itself, and what it was reached by.
func (c *Client) Describe(ctx context.Context) (d wire.Description, by Transport, err error) {
	request, err := wire.New(&wire.Describe{})
	if err != nil {
		return d, by, err
	}
	l, err := c.login(ctx, request)
	if err != nil {
		return d, by, err
	}
	by, err = Transport(l.transport), l.answer.Decode(&d)
	c.keep(l)
	return d, by, err
}
