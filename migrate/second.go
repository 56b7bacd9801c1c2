package migrate

import "time"

// maxRound and activeFor bound the time between dials for a second path, which doubles
// each time.

// secondCandidate returns the candidate for a second path, if there is to be one and neither
// a path nor a dial is there for it. It has the transport of the first.
func (m *Manager) secondCandidate(now time.Time) (c Candidate, ok bool) {
	if m.cfg.Paths == Failover || m.dialing(true) {
		return c, false
	}
	first := m.bestPath(now)
	if first == nil || first.candidate.Transport == SSH {
		return c, false
	}
	taken := make(map[string]bool)
	for _, p := range m.paths {
		if p.candidate.Transport != SSH {
			taken[p.candidate.Interface] = true
		}
	}
	if len(taken) > 1 {
		return c, false
	}
	for _, c := range m.ranked(now, first.candidate.Transport) {
		if !taken[c.Interface] && !m.avoided(c) {
			return c, true
		}
	}
	return c, false
}

// ensureSecond dials for a second path over another interface, if there is to be one.
func (m *Manager) ensureSecond(now time.Time) {
	c, ok := m.secondCandidate(now)
	if ok && !now.Before(m.second.next) {
		m.second.again(now, maxRound, activeFor)
		m.dial(now, c, true)
	}
}
