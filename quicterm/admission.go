//go:build linux || darwin

package quicterm

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// sourceRate and sourceBurst limit the connections that a source may try
	// to make, per second and at once. A client in need makes 40 and 64, and
	// several may be behind one address.
	sourceRate, sourceBurst = 200, 400

	// resumeRate and resumeBurst limit the resumes of a session, by one client.
	resumeRate, resumeBurst = 50, 100

	// Of clients that are refused at the door one is logged each second, of
	// those that are let in to talk and then sent away the first few as well.
	refusedBurst, deniedBurst = 1, 64
)

// Reasons to refuse a client. QUIC tells it no more than that it is refused.
var (
	errBusy       = errors.New("too many unauthenticated clients")
	errSourceBusy = errors.New("too many unauthenticated clients from there")
	errTooOften   = errors.New("too many attempts")
)

// admissions count the clients that are on their way in, and refuse them where
// there are too many. They are safe for concurrent use.
type admissions struct {
	most     int // on their way in at once
	attempts *limiter[netip.Prefix]

	mu      sync.Mutex
	total   int
	sources map[netip.Prefix]int
}

func newAdmissions(most int) *admissions {
	return &admissions{
		most:     most,
		attempts: newLimiter[netip.Prefix](sourceRate, sourceBurst),
		sources:  make(map[netip.Prefix]int),
	}
}

// mostOfSource is how many may come from one source: all that is left are for
// others. Each needs a place for a few round trips only.
func (a *admissions) mostOfSource() int { return max(a.most/4, 4) }

// enter counts a client, or says why it is refused. If it does not, leave is to
// be called once.
func (a *admissions) enter(now time.Time, from netip.Prefix) error {
	if !a.attempts.allow(now, from) {
		return errTooOften
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.total >= a.most:
		return errBusy
	case a.sources[from] >= a.mostOfSource():
		return errSourceBusy
	}
	a.total++
	a.sources[from]++
	return nil
}

func (a *admissions) leave(from netip.Prefix) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total--
	if a.sources[from]--; a.sources[from] == 0 {
		delete(a.sources, from)
	}
}

// doubtful reports whether a client has to show that its address is its own
// (RFC 9000, 8.1.2): when half of what there is for all, or for that source, is
// gone. So nobody can have others refused by sending in their name, and a client
// that hears nothing cannot use up its places.
func (a *admissions) doubtful(now time.Time, from netip.Prefix) bool {
	if a.attempts.low(now, from) {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.total > a.most/2 || a.sources[from] >= a.mostOfSource()/2
}

// An admission counts a client as unauthenticated until it is released.
type admission struct{ release func() }

type admissionKey struct{}

// admit counts a new client, or refuses it.
func (s *Server) admit(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	now, from := time.Now(), source(info.RemoteAddr)
	if err := s.admissions.enter(now, from); err != nil {
		s.refusedLog.warn(now, s.log, "client refused", "client", info.RemoteAddr.String(), "error", err)
		return nil, err
	}
	release := sync.OnceFunc(func() { s.admissions.leave(from) })
	context.AfterFunc(ctx, release)
	return context.WithValue(ctx, admissionKey{}, &admission{release}), nil
}

// doubt asks clients for proof of their address while there are many.
func (s *Server) doubt(addr net.Addr) bool {
	return s.admissions.doubtful(time.Now(), source(addr))
}
