//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"
)

const (
	// sourceRate and sourceBurst limit the connections that one source tries to
	// make, per second and at once. A client without a path makes 30 a second,
	// and several clients may share an address.
	sourceRate, sourceBurst = 200, 400

	// refusedBurst and deniedBurst are how many lines are logged at once, before it
	// is one a second: of connections that are refused, and of clients that are
	// accepted but prove nothing.
	refusedBurst, deniedBurst = 1, 64
)

// Reasons to refuse a connection. QUIC tells the client only that it is refused.
var (
	errBusy       = errors.New("too many unauthenticated clients")
	errSourceBusy = errors.New("too many unauthenticated clients from one source")
	errTooOften   = errors.New("too many attempts")
)

// unauthenticated counts the clients that have not proven anything yet, and limits
// them, in total and of each source. It is safe for concurrent use.
type unauthenticated struct {
	limit    int // of clients at once
	attempts *limiter[netip.Prefix]

	mu      sync.Mutex
	total   int
	sources map[netip.Prefix]int
}

func newUnauthenticated(limit int) *unauthenticated {
	return &unauthenticated{
		limit:    limit,
		attempts: newLimiter[netip.Prefix](sourceRate, sourceBurst),
		sources:  make(map[netip.Prefix]int),
	}
}

// sourceLimit returns how many clients of one source there may be at once. The others
// are for other sources. A client counts for a few round trips only.
func (u *unauthenticated) sourceLimit() int { return max(u.limit/4, 4) }

// add counts a client, or returns why it is refused. The caller calls remove once for
// each client that was counted.
func (u *unauthenticated) add(now time.Time, source netip.Prefix) error {
	if !u.attempts.allow(now, source) {
		return errTooOften
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.total >= u.limit:
		return errBusy
	case u.sources[source] >= u.sourceLimit():
		return errSourceBusy
	}
	u.total++
	u.sources[source]++
	return nil
}

func (u *unauthenticated) remove(source netip.Prefix) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.total--
	if u.sources[source]--; u.sources[source] == 0 {
		delete(u.sources, source)
	}
}

// mustValidate reports whether a client must validate its address (RFC 9000, 8.1.2):
// if half of a limit is used, the total one or that of the source. So an attacker with
// forged addresses can neither use the limits up nor have others refused.
func (u *unauthenticated) mustValidate(now time.Time, source netip.Prefix) bool {
	if u.attempts.low(now, source) {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.total > u.limit/2 || u.sources[source] >= u.sourceLimit()/2
}

// releaseKey is the key of a connection's context for the function that releaseFunc
// returns.
type releaseKey struct{}

// releaseFunc returns the function that stops counting a connection as
// unauthenticated. It may be called more than once.
func releaseFunc(ctx context.Context) func() {
	release, ok := ctx.Value(releaseKey{}).(func())
	if !ok {
		return func() {}
	}
	return release
}

// admit counts a new connection as unauthenticated until it is released or ends, or
// refuses it.
func (s *Server) admit(ctx context.Context, client netip.AddrPort) (context.Context, error) {
	now, source := time.Now(), sourceOf(client.Addr())
	if err := s.unauthenticated.add(now, source); err != nil {
		s.refusedLog.warn(now, s.log, "client refused", "client", client.String(), "error", err)
		return nil, err
	}
	release := sync.OnceFunc(func() { s.unauthenticated.remove(source) })
	context.AfterFunc(ctx, release)
	return context.WithValue(ctx, releaseKey{}, release), nil
}

// mustValidate reports whether a client must validate its address.
func (s *Server) mustValidate(client netip.AddrPort) bool {
	return s.unauthenticated.mustValidate(time.Now(), sourceOf(client.Addr()))
}
