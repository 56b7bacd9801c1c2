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

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/quota"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// sourceRate and sourceBurst limit the connections that one source tries to make, per second and at once. A
	// client without a path dials each of its candidates twice within about a second, and later few, and several
	// clients may share an address. A site has siteTimes as many.
	sourceRate, sourceBurst = 200, 400
	siteTimes               = 4

	// totalRate and totalBurst limit the connections of strangers of all sources together, because each handshake
	// takes a millisecond of CPU time. The last protectedBurst are for strangers that are protected.
	totalRate, totalBurst = 100, 800
	protectedBurst        = 400

	// firstRate and firstBurst limit the strangers of a site that are protected, for protectedTime,
	// which is some round trips: in a flood from many addresses, few are.
	firstRate, firstBurst = 0.125, 4

	// packetRate and packetBurst are how many packets a second that may begin a connection are looked at,
	// and at once: more than strangers may make, with a second try each. Above that, each site
	// has sitePacketRate and sitePacketBurst: a client needs two packets to connect, and some
	// more that are lost. The sites that have used these up share the last spentPackets, so
	// who forges packets of a client's address must forge as many as all to keep the client out.
	packetRate, packetBurst         = 600, 2100
	sitePacketRate, sitePacketBurst = 1, 8
	spentPackets                    = 100

	// replayRate and replayBurst limit the denied resumes of a source. From half of that on, its clients must
	// validate their addresses: whoever recorded packets can send them again from forged addresses.
	replayRate, replayBurst = 2, 20

	// deniedRate and deniedResumes limit the resumes of a session by one source that
	// its holder denies, per second and at once. A holder is asked no more then.
	deniedRate, deniedResumes = 5, 50

	// maxClosing bounds the evicted connections that are not closed yet, and maxSiteClosing those of a site. QUIC can
	// only close a connection whose ClientHello is complete; the others end after seconds.
	maxClosing, maxSiteClosing = 512, 8

	// rsaRate limits the signatures by an RSA host key per second, and at once. One of
	// 4096 bits takes 5 ms of CPU time.
	rsaRate = 20

	// maxWaiting is how many clients without a login a source has before its next ones must
	// validate their addresses. A roaming client dials 4 at once.
	maxWaiting = 8

	// refusedBurst and deniedBurst are how many lines are logged at once, before it is one a
	// second: of connections that are refused, and of clients that are accepted but prove nothing.
	refusedBurst, deniedBurst = 1, 64
)

// Reasons to refuse a connection. QUIC tells the client only that it is refused.
var (
	errBusy     = errors.New("too many unauthenticated clients")
	errTooOften = errors.New("too many attempts")
)

// A pending is a client that has not proven anything yet.
type pending struct {
	quota.Place
	evicted context.Context // ends when the client loses its place
}

// A resumer is a source that resumes a session.
type resumer struct {
	id     wire.SessionID
	source netip.Prefix
}

// unauthenticated limits the clients that have not proven anything yet. It refuses those that come too often. If
// there are too many, a new client takes the place of an older one. It is safe for concurrent use.
type unauthenticated struct {
	sources, sites, first *quota.Rates[netip.Prefix] // first: of sites
	total                 *rate.Limiter
	packets               *rate.Limiter
	packetsBySite         *quota.Rates[netip.Prefix]
	replays               *quota.Rates[netip.Prefix]
	denied                *quota.Rates[resumer]
	rsa                   *rate.Limiter

	mu        sync.Mutex
	strangers *quota.Places                        // clients that are silent, of sources where none has logged in
	others    *quota.Places                        // strangers cannot use up their places
	closing   *quota.Places                        // evicted, and not closed yet
	proven    quota.Recent[netip.Prefix, struct{}] // sources where clients have logged in
}

// newUnauthenticated returns one with a number of places: half of them for strangers.
func newUnauthenticated(places int) *unauthenticated {
	return &unauthenticated{
		sources:       quota.NewRates[netip.Prefix](sourceRate, sourceBurst),
		sites:         quota.NewRates[netip.Prefix](siteTimes*sourceRate, siteTimes*sourceBurst),
		first:         quota.NewRates[netip.Prefix](firstRate, firstBurst),
		total:         rate.NewLimiter(totalRate, totalBurst),
		packets:       rate.NewLimiter(packetRate, packetBurst),
		packetsBySite: quota.NewRates[netip.Prefix](sitePacketRate, sitePacketBurst),
		replays:       quota.NewRates[netip.Prefix](replayRate, replayBurst),
		denied:        quota.NewRates[resumer](deniedRate, deniedResumes),
		rsa:           rate.NewLimiter(rsaRate, rsaRate),
		strangers:     quota.NewPlaces(max(places/2, 1)),
		others:        quota.NewPlaces(max(places/2, 1)),
		closing:       quota.NewPlaces(maxClosing),
	}
}

// add counts a client, or returns why it is refused. The caller calls remove for each client that was counted.
func (u *unauthenticated) add(now time.Time, client netip.Addr) (*pending, error) {
	p := &pending{Place: quota.Place{Source: quota.Source(client), Site: quota.Site(client)}}
	if !u.sources.Allow(now, p.Source) || !u.sites.Allow(now, p.Site) {
		return nil, errTooOften
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	places := u.strangers
	if _, p.Known = u.proven.Get(p.Source); p.Known {
		places = u.others
	}
	closing := u.closing.Count(p.Site)
	if closing >= maxSiteClosing || u.closing.Full() && closing+places.Count(p.Site) > 0 {
		return nil, errBusy
	}
	if !p.Known {
		reserve := float64(protectedBurst)
		if u.first.Allow(now, p.Site) {
			p.Protected, reserve = now.Add(protectedTime), 0
		}
		if !quota.AllowAbove(u.total, now, reserve) {
			return nil, errTooOften
		}
	}
	p.evicted, p.Evict = context.WithCancel(context.Background())
	u.enterLocked(now, p, places)
	return p, nil
}

// speaks counts a client that has sent its first message, unless it is evicted. It is not protected then: the new
// clients of one source, if they come fast enough, would take the places of all slow ones.
func (u *unauthenticated) speaks(now time.Time, p *pending) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p.In(u.strangers) || p.In(u.others) {
		p.Protected = time.Time{}
		u.enterLocked(now, p, u.others)
	}
}

// enterLocked gives a client a place, which may be that of another client.
func (u *unauthenticated) enterLocked(now time.Time, p *pending, places *quota.Places) {
	if victim := places.Enter(now, &p.Place); victim != nil {
		u.closing.Add(victim)
		victim.Evict()
	}
}

// leave makes a client that is denied the first to lose its place.
func (u *unauthenticated) leave(p *pending) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p.Leaving = true
}

// know makes a client keep its place against unknown ones.
func (u *unauthenticated) know(p *pending) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p.Known = true
}

// prove stops counting a client, and makes its source known.
func (u *unauthenticated) prove(p *pending) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p.Leave()
	u.proven.Put(p.Source, struct{}{})
}

// remove stops counting a client. It may be called more than once.
func (u *unauthenticated) remove(p *pending) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p.Leave()
}

// mustValidate reports whether a client must validate its address (RFC 9000, 8.1.2): if half of a limit is used, a
// total one or that of its source. So an attacker with forged addresses can neither use the limits up nor have others
// refused; for packets that are dropped before, see unwanted.
func (u *unauthenticated) mustValidate(now time.Time, client netip.Addr) bool {
	source := quota.Source(client)
	if u.sources.Low(now, source) || u.sites.Low(now, quota.Site(client)) || u.replays.Low(now, source) ||
		u.total.TokensAt(now) < (totalBurst+protectedBurst)/2 {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.strangers.HalfFull() || u.others.HalfFull() || u.strangers.Count(source)+u.others.Count(source) >= maxWaiting
}

// unwanted reports whether a packet that may begin a connection is dropped: many come, many from its site,
// where no client has logged in, and many from such sites. The address may be forged, as nothing is known yet
// of what the packet proves: so limits for a site alone would let others use up those of a client.
func (u *unauthenticated) unwanted(now time.Time, client netip.Addr) bool {
	if quota.AllowAbove(u.packets, now, spentPackets) {
		return false
	}
	u.mu.Lock()
	_, known := u.proven.Get(quota.Source(client))
	u.mu.Unlock()
	return !known && !u.packetsBySite.Allow(now, quota.Site(client)) && !quota.AllowAbove(u.packets, now, 0)
}

// A guest is what the limits know of a connection.
type guest struct {
	pending *pending
	member  *member
	local   *privsep.Local // that it is of, or nil
}

type guestKey struct{}

func newGuest(ctx context.Context, p *pending, local *privsep.Local) context.Context {
	return context.WithValue(ctx, guestKey{}, &guest{p, new(member), local})
}

func guestOf(ctx context.Context) *guest { return ctx.Value(guestKey{}).(*guest) }

// admit counts a new connection as unauthenticated until it has proven who it is or ends, or refuses it.
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
	return newGuest(ctx, p, nil), nil
}

func (s *Server) mustValidate(client netip.AddrPort) bool {
	return contained(s, true, func() bool { return s.unauthenticated.mustValidate(time.Now(), client.Addr()) })
}

func (s *Server) unwanted(client netip.AddrPort) bool {
	return contained(s, false, func() bool { return s.unauthenticated.unwanted(time.Now(), client.Addr()) })
}

// allowRSA reports whether there is CPU time for a signature by an RSA host key: never while
// the client must validate its address.
func (s *Server) allowRSA(hello *tls.ClientHelloInfo) bool {
	client, _ := netip.ParseAddrPort(hello.Conn.RemoteAddr().String()) // not valid if a proxy does not tell
	return !s.mustValidate(client) && s.unauthenticated.rsa.Allow()
}
