package migrate

import (
	"cmp"
	"time"
)

// inUse records the candidate of the path that is in use from now on.
func (m *Manager) inUse(c Candidate) {
	m.worked, m.climb = c.Transport, climb{}
	if c.Transport != SSH {
		m.remote = c.Remote
	}
}

// adopt closes the paths that a new one replaces, and the dials of no better transport. An SSH path stands by until
// the new one has lasted. It reports whether the new path is to be kept.
func (m *Manager) adopt(now time.Time, fresh *path, second bool) bool {
	if second {
		m.second.interval = 0
		return true
	}
	elsewhere := func(p *path) bool { return p.candidate.Interface != fresh.candidate.Interface }
	for _, p := range m.paths {
		other := elsewhere(p) || p.candidate.Transport < fresh.candidate.Transport
		if !p.standBy && other && m.answering(now, p) && m.better(now, p.candidate, fresh.candidate) {
			return false // the path that was suspect works after all
		}
	}
	for _, id := range ordered(m.paths) {
		p := m.paths[id]
		answering := m.answering(now, p)
		switch {
		case p.candidate.Transport == SSH && fresh.candidate.Transport != SSH:
			m.standBy(id)
			continue
		case answering && elsewhere(p) && (p.standBy || m.cfg.Paths == Redundant):
			continue
		case !answering && elsewhere(p):
			m.penalize(now, p.candidate)
		}
		m.end(id)
	}
	for _, id := range ordered(m.dials) {
		if m.dials[id].candidate.Transport < fresh.candidate.Transport {
			continue // it may only be slower
		}
		m.end(id)
	}
	m.inUse(fresh.candidate)
	m.redialing.ssh = backoff{}
	m.moves++
	return true
}

func (m *Manager) standBy(id ID) {
	if p := m.paths[id]; !p.standBy {
		p.standBy = true
		m.do(StandBy{id})
	}
}

// activate puts the best path that stands by and is live into use, and reports whether there is one.
func (m *Manager) activate(now time.Time) bool {
	best := ID(-1)
	for _, id := range ordered(m.paths) {
		p := m.paths[id]
		if p.standBy && p.state == Live &&
			(best < 0 || p.candidate.Transport < m.paths[best].candidate.Transport) {
			best = id
		}
	}
	if best < 0 {
		return false
	}
	p := m.paths[best]
	p.standBy, p.since = false, now
	m.inUse(p.candidate)
	m.moves++
	m.do(Activate{best})
	return true
}

// prune closes paths that do not prove themselves beside one that works, and those that a
// later one has made superfluous.
func (m *Manager) prune(now time.Time) {
	if len(m.paths) < 2 {
		for _, p := range m.paths {
			p.unsoundSince = time.Time{}
		}
		return
	}
	for _, id := range ordered(m.paths) {
		p := m.paths[id]
		sound := m.trusted(now, p) && p.pingedFirst.IsZero()
		if sound && !m.superfluous(now, p) {
			p.unsoundSince = time.Time{}
			continue
		}
		if p.unsoundSince.IsZero() {
			p.unsoundSince = now
		}
		if now.Before(p.unsoundSince.Add(holdDown)) {
			continue
		}
		m.end(id)
		if !sound {
			m.penalize(now, p.candidate)
		}
	}
}

// superfluous reports whether a path with a better transport, or a later one with the same, does everything that a
// path does, or whether a path is on an interface to avoid beside one that is not.
func (m *Manager) superfluous(now time.Time, p *path) bool {
	for _, other := range m.paths {
		if other.standBy || !m.trusted(now, other) {
			continue
		}
		if m.avoided(p.candidate) && !m.avoided(other.candidate) {
			return true
		}
		replaces := m.cfg.Paths != Redundant && !p.standBy || p.candidate.Transport == SSH ||
			other.candidate.Interface == p.candidate.Interface
		better := cmp.Or(p.candidate.Transport-other.candidate.Transport, Transport(other.since.Compare(p.since)))
		if better > 0 && replaces {
			return true
		}
	}
	return false
}
