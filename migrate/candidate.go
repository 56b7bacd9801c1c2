package migrate

import (
	"cmp"
	"net/netip"
	glob "path"
	"slices"
	"time"
)

const (
	// maxCandidates is how many candidates a round dials.
	maxCandidates = 6

	// firstPenalty is how long an interface ranks behind others after its path has failed while
	// another worked. It doubles with each failure, up to maxPenalty: two weak networks take
	// turns, but seldom.
	firstPenalty = 30 * time.Second
	maxPenalty   = 16 * time.Minute

	// maxPenalties is how many interfaces have a penalty.
	maxPenalties = 64
)

// A Candidate is a way from here to the server, as in ICE (RFC 8445): an address of the
// server, and the interface and address that packets leave from.
type Candidate struct {
	Remote    netip.AddrPort // of the server
	Interface string         // over which packets leave, "" if not known
	Source    netip.Addr     // from which they leave
	// Bound means that the socket is bound to the interface. Otherwise the system chooses the
	// interface, and may choose another at any time.
	Bound bool
}

// A penalty ranks an interface behind others after its path has failed.
type penalty struct {
	until time.Time
	span  time.Duration
}

// refresh takes the candidates that there are now. A path whose candidate is gone or has
// changed must prove itself.
func (m *Manager) refresh(now time.Time, candidates []Candidate) {
	if !slices.Equal(candidates, m.candidates) {
		m.second = secondPath{nextDial: now}
	}
	m.candidates = candidates
	for _, p := range m.paths {
		if p.candidate.Bound && m.chosen(p.candidate) {
			continue
		}
		i := slices.IndexFunc(candidates, func(c Candidate) bool {
			return c.Remote == p.candidate.Remote && c.Bound == p.candidate.Bound &&
				(!c.Bound || c.Interface == p.candidate.Interface)
		})
		if i >= 0 && candidates[i] == p.candidate {
			continue
		}
		if i >= 0 {
			p.candidate = candidates[i]
			p.moved++
		}
		p.suspect(Moving)
	}
	for name, p := range m.penalties {
		if len(m.penalties) >= maxPenalties && !now.Before(p.until) {
			delete(m.penalties, name)
		}
	}
	if m.state != Live {
		m.redialing.retryNow(now)
	}
}

// chosen reports whether the system itself chooses the interface of a candidate, so that
// binding a socket to it changes nothing.
func (m *Manager) chosen(c Candidate) bool {
	c.Bound = false
	return slices.Contains(m.candidates, c)
}

// penalize ranks an interface behind others for a while, because it failed while another
// worked. An interface without candidates gets no penalty: it begins anew when it is back.
func (m *Manager) penalize(now time.Time, name string) {
	if name == "" || !slices.ContainsFunc(m.candidates, func(c Candidate) bool { return c.Interface == name }) {
		return
	}
	p := m.penalties[name]
	if p == nil {
		if len(m.penalties) >= maxPenalties {
			return
		}
		p = new(penalty)
		m.penalties[name] = p
	}
	p.span = min(max(2*p.span, firstPenalty), maxPenalty)
	if now.Sub(p.until) > maxPenalty {
		p.span = firstPenalty
	}
	p.until = now.Add(p.span)
}

// rank orders candidates: a lower rank is better.
func (m *Manager) rank(now time.Time, c Candidate) (rank [4]int) {
	if p := m.penalties[c.Interface]; p != nil && now.Before(p.until) {
		rank[0] = 1
	}
	if m.avoided(c) {
		rank[1] = 1
	}
	rank[2] = len(m.cfg.Prefer)
	for i, pattern := range m.cfg.Prefer {
		if ok, _ := glob.Match(pattern, c.Interface); ok {
			rank[2] = i
			break
		}
	}
	if c.Bound { // otherwise the system has chosen it, and has its reasons
		rank[3] = 1
	}
	return rank
}

func (m *Manager) compare(now time.Time, a, b Candidate) int {
	ra, rb := m.rank(now, a), m.rank(now, b)
	return slices.Compare(ra[:], rb[:])
}

func (m *Manager) better(now time.Time, a, b Candidate) bool { return m.compare(now, a, b) < 0 }

func (m *Manager) avoided(c Candidate) bool {
	return slices.ContainsFunc(m.cfg.Avoid, func(pattern string) bool {
		ok, _ := glob.Match(pattern, c.Interface)
		return ok
	})
}

// ranked returns the candidates to dial, best first. Among equals, the address that answered
// last comes first.
func (m *Manager) ranked(now time.Time) []Candidate {
	var ranked []Candidate
	for _, c := range m.candidates {
		if !c.Bound || !m.chosen(c) {
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
