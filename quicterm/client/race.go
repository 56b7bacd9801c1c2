package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A loggedIn is a carrier on which the user is logged in and a request is answered. Everything
// behind the answer comes on it. The owner closes it.
type loggedIn struct {
	carrier.Carrier
	transport migrate.Transport
	answer    wire.Message
	since     time.Time // the login, or just before
}

// login sends a request on the connection of an earlier one, or on a new one, and returns it with the answer.
func (c *Client) login(ctx context.Context, request wire.Message) (l *loggedIn, err error) {
	if l = c.takeKept(); l != nil {
		err = l.ask(ctx, request)
	} else {
		l, err = c.loginAnew(ctx, request)
	}
	if err != nil {
		return nil, err
	}
	if l.answer.Type != wire.TypeError {
		return l, nil
	}
	refusal := new(wire.Error)
	err = refusal
	if invalid := l.answer.Decode(refusal); invalid != nil {
		err = invalid
	}
	if request.Type == wire.TypeAttach { // the last request on its connection
		l.Close()
	} else {
		c.keep(l)
	}
	return nil, err
}

// loginAnew connects, proves the user and sends a request. It tries all transports that there are,
// or only the tunnel with TunnelFirst, and returns the first carrier on which there is an answer.
// The others are closed: what the request has done on them, it has done once (SPEC.md, 5.2).
func (c *Client) loginAnew(ctx context.Context, request wire.Message) (l *loggedIn, err error) {
	transports := slices.Collect(maps.Keys(c.dialers))
	if c.cfg.TunnelFirst {
		transports = []migrate.Transport{migrate.SSH}
	}
	all, cancel := context.WithCancel(ctx)
	defer cancel()
	direct, cancelDirect := context.WithCancel(all)
	defer cancelDirect()
	r := c.newRace(all, request)
	if c.cfg.Token != nil {
		if r.token, err = c.cfg.Token(ctx); err != nil {
			return nil, err
		}
	}
	if c.cfg.Waiting != nil {
		timer := time.AfterFunc(patience, func() {
			if r.connected.Err() == nil {
				c.cfg.Waiting()
			}
		})
		defer timer.Stop()
	}
	type result struct {
		transport migrate.Transport
		carrier   *loggedIn
		err       error
	}
	results := make(chan result, len(transports)) // some may end when nobody waits any more
	for _, t := range transports {
		go func() {
			ctx := direct
			if t == migrate.SSH {
				ctx = all
			}
			l, err := r.attempt(ctx, t)
			results <- result{t, l, err}
		}()
	}
	drop := func(running int) {
		for range running {
			if late := <-results; late.err == nil {
				late.carrier.Close()
			}
		}
	}
	errs := make(map[migrate.Transport]error)
	for running := len(transports); running > 0; {
		select {
		case <-ctx.Done():
			go drop(running)
			return nil, context.Cause(ctx)
		case res := <-results:
			running--
			if res.err == nil || isFinal(res.err) {
				cancel()
				go drop(running) // a key that waits to be touched cannot be told
				if res.err == nil && c.cfg.LoggedIn != nil {
					var server netip.AddrPort
					if a, ok := res.carrier.Carrier.(carrier.Addressed); ok {
						server = a.RemoteAddr()
					}
					c.cfg.LoggedIn(Transport(res.transport), server, c.loginError(errs))
				}
				return res.carrier, res.err
			}
			if direct.Err() == nil || res.transport == migrate.SSH {
				errs[res.transport] = res.err
			}
			if res.transport != migrate.SSH && c.isAnswer(res.err) {
				cancelDirect()
			}
			if res.transport == migrate.TCP && errors.Is(res.err, syscall.ECONNREFUSED) {
				go r.endIfRefused(direct, cancelDirect)
			}
			close(r.failed[res.transport])
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, c.loginError(errs)
}

// isFinal reports whether an error ends a login, whatever other transports would bring.
func isFinal(err error) bool {
	var changed *auth.ChangedHostError
	var revoked *auth.RevokedHostError
	return errors.As(err, &changed) || errors.As(err, &revoked)
}

// isAnswer reports whether an error of QUIC or TCP holds for both. A token is good for one attempt.
func (c *Client) isAnswer(err error) bool {
	var denied *DeniedError
	var unknown *auth.UnknownHostError
	var brokenOff *BrokenOffError
	return errors.As(err, &denied) || errors.As(err, &unknown) || errors.Is(err, ErrNoKeys) || errors.Is(err, ErrBusy) ||
		c.cfg.Token != nil && errors.As(err, &brokenOff)
}

// loginError returns the reason for which nobody could log in: what came closest to it.
func (c *Client) loginError(errs map[migrate.Transport]error) error {
	quic, tcp, tunnel := errs[migrate.QUIC], errs[migrate.TCP], errs[migrate.SSH]
	direct := quic
	var noQUIC, noTCP *UnreachableError
	switch {
	case errors.As(quic, &noQUIC) && errors.As(tcp, &noTCP):
		direct = &UnreachableError{fmt.Errorf("by UDP %w; by TCP %w", noQUIC.Err, noTCP.Err)}
	case quic == nil || noQUIC != nil && tcp != nil || c.isAnswer(tcp):
		direct = tcp
	}
	switch {
	case tunnel == nil:
		return direct
	case direct == nil, errors.Is(direct, ErrNoKeys):
		return tunnel
	case errors.As(direct, new(*UnreachableError)): // the tunnel says more
		if failed := new(TunnelError); errors.As(tunnel, &failed) {
			failed.Unreachable = true
		}
		return tunnel
	}
	return errors.Join(direct, tunnel)
}

// A race is a login by several transports at once.
type race struct {
	client  *Client
	request wire.Message
	token   []byte // nil if keys prove the user
	resolve func() ([]netip.AddrPort, error)

	// lead holds a token for the connection that may prove the user: with others beside it, a
	// key would have to be touched more than once.
	lead chan struct{}

	connected, silent       context.Context // end when a server has answered over QUIC or TCP, and has fallen silent since
	setConnected, setSilent func()
	failed                  map[migrate.Transport]chan struct{} // closed when there is no more to expect of it
}

func (c *Client) newRace(ctx context.Context, request wire.Message) *race {
	r := &race{
		client:  c,
		request: request,
		resolve: sync.OnceValues(func() ([]netip.AddrPort, error) { return c.cfg.Resolve(ctx) }),
		lead:    make(chan struct{}, 1),
		failed:  make(map[migrate.Transport]chan struct{}),
	}
	r.connected, r.setConnected = context.WithCancel(context.Background())
	r.silent, r.setSilent = context.WithCancel(context.Background())
	r.lead <- struct{}{}
	for t := range c.dialers {
		r.failed[t] = make(chan struct{})
	}
	return r
}

// attempt logs in by one transport, when it is its turn, and again while the server is busy. QUIC has a second
// connection if the first one is lost: all packets that a login sends in some seconds may be lost, and the request is
// done once.
func (r *race) attempt(ctx context.Context, t migrate.Transport) (*loggedIn, error) {
	if err := r.begin(ctx, t); err != nil {
		return nil, err
	}
	until := time.Now().Add(busyTime)
	var lost error // the first connection, after the request was sent
	for pause := busyPause; ; pause = min(2*pause, patience) {
		l, err := r.try(ctx, t)
		brokenOff := errors.As(err, new(*BrokenOffError))
		if brokenOff && !errors.Is(err, ErrBusy) && t == migrate.QUIC && r.token == nil && lost == nil &&
			ctx.Err() == nil {
			lost = err
			r.setSilent() // TCP need not wait
			continue
		}
		if lost != nil && errors.As(err, new(*UnreachableError)) {
			return nil, lost // the server may have done what it was asked
		}
		sent := r.token != nil && brokenOff // a token is good for one attempt
		if !errors.Is(err, ErrBusy) || sent || time.Now().Add(pause).After(until) {
			return l, err
		}
		r.setConnected() // no other transport leads to a server that is less busy
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try makes one connection by a transport and logs in on it.
func (r *race) try(ctx context.Context, t migrate.Transport) (*loggedIn, error) {
	conn, err := r.connect(ctx, t)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	since := time.Now()
	answer, err := r.authenticate(ctx, t, conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &loggedIn{conn, t, answer, since}, nil
}

// endIfRefused calls end if no program has the server's port: by TCP the system there has said so, and now by UDP. QUIC
// itself does not hear that, and would wait.
func (r *race) endIfRefused(ctx context.Context, end func()) {
	n, ok := r.client.network.(interface {
		Refuses(ctx context.Context, remote netip.AddrPort) bool
	})
	addrs, err := r.resolve()
	if !ok || err != nil {
		return
	}
	for _, a := range addrs {
		if !n.Refuses(ctx, a) {
			return
		}
	}
	end()
}

// begin waits until an attempt is to begin.
func (r *race) begin(ctx context.Context, t migrate.Transport) error {
	cfg := &r.client.cfg
	switch {
	case t == migrate.SSH && cfg.TunnelFirst:
		return nil
	case t == migrate.SSH:
		wait(ctx, loginPing, r.failed[migrate.QUIC], r.failed[migrate.TCP])
		if r.connected.Err() != nil { // one login is enough
			return wait(ctx, 0, r.failed[migrate.QUIC], r.failed[migrate.TCP])
		}
	case cfg.Token == nil && len(cfg.Keys) == 0:
		return ErrNoKeys
	case t == migrate.TCP && !cfg.TCPFirst && !cfg.NoUDP:
		wait(ctx, migrate.TCPDelay, r.failed[migrate.QUIC])
		if r.connected.Err() != nil { // by QUIC
			select {
			case <-r.silent.Done():
			case <-r.failed[migrate.QUIC]:
			case <-ctx.Done():
			}
		}
	}
	return ctx.Err()
}

// wait waits until all channels are closed or, unless it is 0, some time has passed.
func wait(ctx context.Context, longest time.Duration, closed ...chan struct{}) error {
	var timeout <-chan time.Time
	if longest > 0 {
		timer := time.NewTimer(longest)
		defer timer.Stop()
		timeout = timer.C
	}
	for _, c := range closed {
		select {
		case <-c:
		case <-timeout:
			return ctx.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

func (r *race) connect(ctx context.Context, t migrate.Transport) (carrier.Carrier, error) {
	if t == migrate.SSH {
		conn, err := r.client.dialers[t].dial(ctx, migrate.Candidate{Transport: t})
		if err != nil {
			return nil, &TunnelError{Err: err}
		}
		return conn, nil
	}
	addrs, err := r.resolve()
	if err != nil {
		return nil, &UnreachableError{err}
	}
	conn, err := r.client.connect(ctx, t, addrs)
	if err != nil {
		return nil, r.client.connectError(t, err)
	}
	r.setConnected()
	return conn, nil
}

// authenticate proves the user on a carrier and returns the answer to the request.
func (r *race) authenticate(ctx context.Context, t migrate.Transport, conn carrier.Carrier) (wire.Message, error) {
	release := func() {}
	if t != migrate.SSH {
		select {
		case <-r.lead:
			release = sync.OnceFunc(func() { r.lead <- struct{}{} })
			defer release()
		case <-ctx.Done():
			return wire.Message{}, ctx.Err()
		}
	}
	defer closeIfSilent(conn, func() {
		if r.token == nil {
			r.setSilent()
			release()
		}
	})()
	answer, err := r.client.authenticate(conn, t == migrate.SSH, r.token, r.request)
	if brokenOff := new(BrokenOffError); errors.As(err, &brokenOff) && r.client.dialers[t].refused(brokenOff.Err) {
		brokenOff.Err = ErrBusy
	}
	if err != nil && t == migrate.SSH && !isFinal(err) {
		err = &TunnelError{Err: err}
	}
	return answer, err
}
