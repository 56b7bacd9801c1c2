//go:build linux || darwin

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// sourceRate and sourceBurst limit the connections that one source tries to
	// make, per second and at once. A client without a path dials each of its candidates
	// twice within about a second, and later few, and several clients may share an address.
	// A site has siteTimes as many.
	sourceRate, sourceBurst = 200, 400
	siteTimes               = 4

	// totalRate and totalBurst limit the connections of all sources together,
	// because each handshake takes a millisecond of CPU time. Sites within fairRate and
	// fairBurst have spareRate and spareBurst for themselves, whatever the others do: no more,
	// as a flood may have any number of sites. A source where clients have logged in is
	// always admitted.
	totalRate, totalBurst = 100, 400
	spareRate, spareBurst = 100, 400
	fairRate, fairBurst   = 0.5, 16

	// firstRate and firstBurst limit the strangers of a site that are protected: in a flood from many
	// addresses, few are. One that is not counts unprotectedCost times for fairRate.
	firstRate, firstBurst = 0.125, 4
	unprotectedCost       = 4

	// begunRate and begunBurst are how many packets a second that may begin a connection are looked at,
	// and at once: more than strangers may make, with a second try each. Above that, each site
	// has siteBegunRate and siteBegunBurst: a client needs two packets to connect, and some
	// more that are lost. The sites that have used these up share spareBegunRate and spareBegunBurst:
	// who forges packets of a client's address must forge as many to keep the client out.
	begunRate, begunBurst           = 500, 2000
	siteBegunRate, siteBegunBurst   = 1, 8
	spareBegunRate, spareBegunBurst = 100, 100

	// replayRate and replayBurst limit the denied resumes of a source. From half of
	// that on, its clients must validate their addresses: whoever recorded packets
	// can send them again from forged addresses.
	replayRate, replayBurst = 2, 20

	// maxClosing bounds the evicted connections that are not closed yet, and
	// maxSiteClosing those of a site. QUIC can only close a connection whose
	// ClientHello is complete; the others end after seconds.
	maxClosing, maxSiteClosing = 512, 8

	// rsaRate limits the signatures by an RSA host key per second, and at once. One of
	// 4096 bits takes 5 ms of CPU time.
	rsaRate = 20

	// maxSilent is how many silent clients a source has before its next ones must
	// validate their addresses. A roaming client dials 4 at once.
	maxSilent = 8

	// refusedBurst and deniedBurst are how many lines are logged at once, before it is one a
	// second: of connections that are refused, and of clients that are accepted but prove nothing.
	refusedBurst, deniedBurst = 1, 64
)

// Reasons to refuse a connection. QUIC tells the client only that it is refused.
var (
	errBusy     = errors.New("too many unauthenticated clients")
	errTooOften = errors.New("too many attempts")
)

// A class is the unauthenticated clients that have come equally far. Each class has
// places of its own: silent strangers cannot use up those of clients that resume.
type class int

const (
	strangers class = iota // they have sent no message
	regulars               // the same, of a source where clients have logged in
	logins                 // they have sent a Hello
	resumes                // they have sent a Resume
	classes
)

// unauthenticated limits the clients that have not proven anything yet. It refuses those
// that come too often. If a class is full, a new client takes the place of an older one.
// It is safe for concurrent use.
type unauthenticated struct {
	sources, replays   *limiter[netip.Prefix]
	sites, fair, first *limiter[netip.Prefix] // of sites
	total, spare       *rate.Limiter
	begun, spareBegun  *rate.Limiter // packets
	begunBySite        *limiter[netip.Prefix]

	mu      sync.Mutex
	classes [classes]*roster
	closing *roster
	proven  generations[netip.Prefix, struct{}] // sources where clients have logged in
}

// newUnauthenticated returns one with a number of places: half of them for strangers, and
// a sixth for each other class.
func newUnauthenticated(places int) *unauthenticated {
	u := &unauthenticated{
		sources:     newLimiter[netip.Prefix](sourceRate, sourceBurst),
		sites:       newLimiter[netip.Prefix](siteTimes*sourceRate, siteTimes*sourceBurst),
		fair:        newLimiter[netip.Prefix](fairRate, fairBurst),
		first:       newLimiter[netip.Prefix](firstRate, firstBurst),
		replays:     newLimiter[netip.Prefix](replayRate, replayBurst),
		total:       rate.NewLimiter(totalRate, totalBurst),
		spare:       rate.NewLimiter(spareRate, spareBurst),
		closing:     newRoster(maxClosing),
		begun:       rate.NewLimiter(begunRate, begunBurst),
		begunBySite: newLimiter[netip.Prefix](siteBegunRate, siteBegunBurst),
		spareBegun:  rate.NewLimiter(spareBegunRate, spareBegunBurst),
	}
	for c := range u.classes {
		u.classes[c] = newRoster(max(places/6, 1))
	}
	u.classes[strangers].limit = max(places/2, 1)
	return u
}

// add counts a client, or returns why it is refused. The caller calls remove for each
// client that was counted.
func (u *unauthenticated) add(now time.Time, client netip.Addr) (*pending, error) {
	p := &pending{source: sourceOf(client), site: siteOf(client)}
	if !u.sources.allow(now, p.source) || !u.sites.allow(now, p.site) {
		return nil, errTooOften
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	c := strangers
	if _, p.known = u.proven.get(p.source); p.known {
		c = regulars
	} else {
		cost := unprotectedCost
		if u.first.allow(now, p.site) {
			p.protected, cost = now.Add(protectedTime), 1
		}
		if !u.total.AllowN(now, 1) && !(u.fair.allowN(now, p.site, cost) && u.spare.AllowN(now, 1)) {
			return nil, errTooOften
		}
	}
	closing := u.closing.counts[p.site]
	if closing >= maxSiteClosing || u.closing.full() && closing+u.classes[c].counts[p.site] > 0 {
		return nil, errBusy
	}
	p.evicted, p.evict = context.WithCancel(context.Background())
	u.enterLocked(now, p, c)
	return p, nil
}

// move counts a client as one of another class, unless it is evicted. It is not protected there: the new
// clients of one source, if they come fast enough, would take the places of all slow ones.
func (u *unauthenticated) move(now time.Time, p *pending, c class) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p.roster != nil && p.roster != u.closing {
		p.roster.remove(p)
		p.protected = time.Time{}
		u.enterLocked(now, p, c)
	}
}

// enterLocked gives a client a place, which may be that of another client.
func (u *unauthenticated) enterLocked(now time.Time, p *pending, c class) {
	r := u.classes[c]
	if r.full() {
		victim := r.victim(now)
		r.remove(victim)
		u.closing.add(victim)
		victim.evict()
	}
	p.since = now
	r.add(p)
}

// leave makes a client that is denied the first to lose its place.
func (u *unauthenticated) leave(p *pending) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p.leaving = true
}

// know makes a client keep its place against unknown ones.
func (u *unauthenticated) know(p *pending) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p.known = true
}

// prove stops counting a client, and makes its source known.
func (u *unauthenticated) prove(p *pending) {
	u.remove(p)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.proven.put(p.source, struct{}{})
}

// remove stops counting a client. It may be called more than once.
func (u *unauthenticated) remove(p *pending) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p.roster != nil {
		p.roster.remove(p)
	}
}

// mustValidate reports whether a client must validate its address (RFC 9000, 8.1.2):
// if half of a limit is used, a total one or that of its source. So an attacker with
// forged addresses can neither use the limits up nor have others refused; for packets that are dropped before,
// see unwanted.
func (u *unauthenticated) mustValidate(now time.Time, client netip.Addr) bool {
	source := sourceOf(client)
	if u.sources.low(now, source) || u.sites.low(now, siteOf(client)) || u.replays.low(now, source) ||
		u.total.TokensAt(now) < totalBurst/2 {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	silent := 0
	for _, c := range []class{strangers, regulars} {
		r := u.classes[c]
		if silent += r.counts[source]; 2*len(r.members) > r.limit {
			return true
		}
	}
	return silent >= maxSilent
}

// unwanted reports whether a packet that may begin a connection is dropped: many come, many from its site,
// where no client has logged in, and many from such sites. The address may be forged, as nothing is known yet
// of what the packet proves: so limits for a site alone would let others use up those of a client.
func (u *unauthenticated) unwanted(now time.Time, client netip.Addr) bool {
	if u.begun.AllowN(now, 1) {
		return false
	}
	u.mu.Lock()
	_, known := u.proven.get(sourceOf(client))
	u.mu.Unlock()
	return !known && !u.begunBySite.allow(now, siteOf(client)) && !u.spareBegun.AllowN(now, 1)
}

// pendingKey is the key of a connection's context for its *pending.
type pendingKey struct{}

// admit counts a new connection as unauthenticated until it has proven who it is or ends,
// or refuses it.
func (s *Server) admit(ctx context.Context, client netip.AddrPort) (context.Context, error) {
	now := time.Now()
	var p *pending
	err := s.contain(s.log, func() (err error) { p, err = s.unauthenticated.add(now, client.Addr()); return err })
	if err != nil {
		s.counts.refused(err)
		s.refusedLog.Limited(now, s.log, "client refused", "event", "refuse", "client", client.String(), "error", err)
		return nil, err
	}
	context.AfterFunc(ctx, func() {
		s.contain(s.log, func() error { s.unauthenticated.remove(p); return nil })
	})
	ctx = context.WithValue(ctx, memberKey{}, new(member))
	return context.WithValue(ctx, pendingKey{}, p), nil
}

// mustValidate reports whether a client must validate its address.
func (s *Server) mustValidate(client netip.AddrPort) bool {
	must := true
	s.contain(s.log, func() error {
		must = s.unauthenticated.mustValidate(time.Now(), client.Addr())
		return nil
	})
	return must
}

// unwanted reports whether a packet that may begin a connection is dropped.
func (s *Server) unwanted(client netip.AddrPort) (drop bool) {
	s.contain(s.log, func() error { drop = s.unauthenticated.unwanted(time.Now(), client.Addr()); return nil })
	return drop
}

// allowRSA reports whether there is CPU time for a signature by an RSA host key: never while
// the client must validate its address.
func (s *Server) allowRSA(hello *tls.ClientHelloInfo) bool {
	client, err := netip.ParseAddrPort(hello.Conn.RemoteAddr().String())
	return err == nil && !s.mustValidate(client) && s.rsa.Allow()
}
