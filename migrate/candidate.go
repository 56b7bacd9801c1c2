package migrate

import (
	"cmp"
	"maps"
	"net/netip"
	glob "path"
	"slices"
	"time"
)

// maxCandidates is how many candidates of a transport a round dials.
const maxCandidates = 6

// A Candidate is a way from here to the server, as in ICE (RFC 8445): a transport, an address of the server, and the
// interface and address that packets leave from. With SSH it has none of these: the ssh program finds its own.
type Candidate struct {
	Transport Transport
	Remote    netip.AddrPort // of the server
	Interface string         // over which packets leave, "" if not known
	Source    netip.Addr     // from which they leave
	// Bound means that the socket is bound to the interface. Otherwise the system chooses the
	// interface, and may choose another at any time.
	Bound bool
}

// String returns words for a log: "quic to 192.0.2.1:4433 over eth0 from 198.51.100.2".
func (c Candidate) String() string {
	text := c.Transport.String()
	if c.Remote.IsValid() {
		text += " to " + c.Remote.String()
	}
	if c.Interface != "" {
		text += " over " + c.Interface
	}
	if c.Source.IsValid() {
		text += " from " + c.Source.String()
	}
	return text
}

// A penalty ranks a transport over an interface behind others after its path has failed.
type penalty struct {
	until time.Time
	span  time.Duration
}

// A penaltyKey says what a penalty is for.
type penaltyKey struct {
	iface     string
	transport Transport
}

// refresh takes the candidates that there are now. A path whose candidate is gone or has changed must prove itself.
func (m *Manager) refresh(now time.Time, candidates []Candidate) {
	changed := !slices.Equal(candidates, m.candidates)
	m.climb.soon(now, changed && len(m.candidates) > 0)
	m.candidates = candidates
	if changed {
		m.second = backoff{next: now}
		m.redialing.rounds = 0
		m.retrySSH(now)
		if m.state != Live {
			m.worked = QUIC
		}
	}
	for _, p := range m.paths {
		if p.candidate.Transport == SSH {
			p.pingDue = p.pingDue || changed
			continue
		}
		if p.candidate.Bound && m.chosen(p.candidate) {
			continue
		}
		i := slices.IndexFunc(candidates, func(c Candidate) bool {
			return c.Transport == p.candidate.Transport && c.Remote == p.candidate.Remote &&
				c.Bound == p.candidate.Bound && (!c.Bound || c.Interface == p.candidate.Interface)
		})
		if i >= 0 && candidates[i] == p.candidate {
			continue
		}
		if i >= 0 && p.candidate.Transport == QUIC { // TCP keeps its address
			p.candidate = candidates[i]
			p.moved++
			p.minRTT = 0
		}
		p.suspect(Moving)
		m.worked = QUIC
	}
	maps.DeleteFunc(m.penalties, func(_ penaltyKey, p *penalty) bool { return now.Sub(p.until) > maxPenalty })
	if m.state != Live {
		m.redialing.retryNow(now)
		for _, d := range m.dials {
			d.answered = false // by the network as it was before
		}
	}
}

// chosen reports whether the system itself chooses the interface of a candidate, so that
// binding a socket to it changes nothing.
func (m *Manager) chosen(c Candidate) bool {
	c.Bound = false
	return slices.Contains(m.candidates, c)
}

// penalize ranks the transport of a candidate over its interface behind others for a while, because it failed while
// another worked. An interface without candidates gets no penalty: it begins anew when it is back.
func (m *Manager) penalize(now time.Time, c Candidate) {
	candidate := func(other Candidate) bool { return other.Interface == c.Interface }
	if c.Interface == "" || !slices.ContainsFunc(m.candidates, candidate) {
		return
	}
	key := penaltyKey{c.Interface, c.Transport}
	p := m.penalties[key]
	if p == nil {
		p = new(penalty)
		m.penalties[key] = p
	}
	p.span = min(max(2*p.span, firstPenalty), maxPenalty)
	if now.Sub(p.until) > maxPenalty {
		p.span = firstPenalty
	}
	p.until = now.Add(p.span)
}

// A rank orders candidates: a lower one is better. Its parts are, in this order: a penalty, or SSH; an interface to
// avoid; the transport; the place of the interface in Config.Prefer; whether the socket is bound.
type rank [5]int

func (m *Manager) rank(now time.Time, c Candidate) (r rank) {
	if p := m.penalties[penaltyKey{c.Interface, c.Transport}]; p != nil && now.Before(p.until) {
		r[0] = 1
	}
	if c.Transport == SSH {
		r[0] = 2
	}
	if m.avoided(c) {
		r[1] = 1
	}
	r[2] = int(c.Transport)
	r[3] = len(m.cfg.Prefer)
	for i, pattern := range m.cfg.Prefer {
		if ok, _ := glob.Match(pattern, c.Interface); ok {
			r[3] = i
			break
		}
	}
	if c.Bound { // otherwise the system has chosen it, and has its reasons
		r[4] = 1
	}
	return r
}

// interfaceRank is the part of a rank that is about the interface alone.
func (r rank) interfaceRank() rank { return rank{0, r[1], 0, r[3], r[4]} }

func (a rank) compare(b rank) int { return slices.Compare(a[:], b[:]) }

func (m *Manager) compare(now time.Time, a, b Candidate) int {
	return m.rank(now, a).compare(m.rank(now, b))
}

func (m *Manager) better(now time.Time, a, b Candidate) bool { return m.compare(now, a, b) < 0 }

func (m *Manager) avoided(c Candidate) bool {
	return slices.ContainsFunc(m.cfg.Avoid, func(pattern string) bool {
		ok, _ := glob.Match(pattern, c.Interface)
		return ok
	})
}

// ranked returns the candidates of a transport to dial, best first. Among equals, the address
// that answered last comes first.
func (m *Manager) ranked(now time.Time, t Transport) []Candidate {
	var ranked []Candidate
	for _, c := range m.candidates {
		if c.Transport == t && (!c.Bound || !m.chosen(c)) {
			ranked = append(ranked, c)
		}
	}
	answered := func(c Candidate) int {
		if c.Remote == m.remote {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(ranked, func(a, b Candidate) int {
		return cmp.Or(m.compare(now, a, b), answered(a)-answered(b))
	})
	return ranked[:min(len(ranked), maxCandidates)]
}

// withoutAvoided leaves out the candidates on interfaces to avoid, unless there are no others.
func (m *Manager) withoutAvoided(candidates []Candidate) []Candidate {
	if others := slices.DeleteFunc(slices.Clone(candidates), m.avoided); len(others) > 0 {
		return others
	}
	return candidates
}
