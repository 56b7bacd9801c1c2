package migrate

import (
	"slices"
	"time"
)

// scheduleBeside schedules what is dialed beside a path that works: a better interface, a better transport, a second
// path, and the same candidate for keys of its own. It drops the paths that are no longer needed.
func (m *Manager) scheduleBeside(now time.Time, at func(time.Time, func())) {
	at(now, func() { m.prune(now) })
	for _, p := range m.paths {
		if !p.unsoundSince.IsZero() {
			at(p.unsoundSince.Add(holdDown), func() {})
		}
	}
	if c, t, ok := m.upgrade(now); ok {
		at(t, func() { m.dial(now, c, false) })
	}
	m.scheduleClimb(now, at)
	if c, ok := m.secondCandidate(now); ok {
		at(m.second.next, func() {
			m.second.again(now, maxRound, ActiveFor)
			m.dial(now, c, true)
		})
	}
	for _, id := range ordered(m.paths) {
		if t, ok := m.renewAt(m.paths[id]); ok {
			at(t, func() { m.renew(now, id) })
		}
	}
	for _, p := range m.penalties {
		at(p.until, func() {})
	}
}

// bestPath returns the path in use with the best transport, the oldest of them, or nil.
func (m *Manager) bestPath(now time.Time) (best *path) {
	for _, id := range ordered(m.paths) {
		p := m.paths[id]
		if !p.standBy && m.trusted(now, p) && (best == nil || p.candidate.Transport < best.candidate.Transport) {
			best = p
		}
	}
	return best
}

// upgrade returns a candidate over a better interface than those in use, and when to dial it: a path that works is kept
// for holdDown. Candidates with a better transport are for climb.
func (m *Manager) upgrade(now time.Time) (best Candidate, at time.Time, ok bool) {
	inUse := m.bestPath(now)
	if inUse == nil || m.cfg.Paths == Redundant || m.dialing(false) {
		return best, at, false
	}
	for t := inUse.candidate.Transport; t < SSH; t++ {
		if ranked := m.ranked(now, t); len(ranked) > 0 && (!ok || m.better(now, ranked[0], best)) {
			best, ok = ranked[0], true
		}
	}
	for _, p := range m.paths {
		if !p.standBy {
			ok = ok && best.Interface != p.candidate.Interface && m.better(now, best, p.candidate)
			at = later(at, p.since.Add(holdDown))
		}
	}
	return best, at, ok
}

// A climb says when to dial a better transport than the one in use, beside the path in use.
type climb struct {
	backoff
	last    time.Time // when a candidate was dialed, or that was of no use
	nextTCP time.Time // when to dial TCP as well, beside SSH, or zero
}

// soon makes the next climb come soon, because the network may have changed.
func (c *climb) soon(now time.Time, changed bool) {
	after := firstClimb
	if changed {
		after, c.interval = pingInterval, 0
	}
	if !c.next.IsZero() {
		c.next = earlier(c.next, c.last.Add(after))
	}
}

// climbed schedules the next climb.
func (c *climb) climbed(now time.Time) {
	c.last = now
	c.again(now, firstClimb, maxClimb)
}

// scheduleClimb schedules dials of better transports than the one in use, one dial of each at a time.
func (m *Manager) scheduleClimb(now time.Time, at func(time.Time, func())) {
	c, inUse := &m.climb, m.bestPath(now)
	if inUse == nil || inUse.candidate.Transport == QUIC {
		*c = climb{}
		return
	}
	if c.next.IsZero() {
		c.climbed(now)
	}
	at(c.next, func() {
		if m.dialBetter(now, inUse, QUIC) {
			c.climbed(now)
			if inUse.candidate.Transport == SSH {
				c.nextTCP = now.Add(TCPDelay)
			}
		}
	})
	if !c.nextTCP.IsZero() {
		at(c.nextTCP, func() {
			c.nextTCP = time.Time{}
			m.dialBetter(now, inUse, TCP)
		})
	}
}

// dialBetter dials the best candidate of a transport beside the path in use, unless the interface of that is better.
// SSH uses the one that the system chooses. It reports whether there is such a candidate.
func (m *Manager) dialBetter(now time.Time, inUse *path, t Transport) bool {
	ranked := m.withoutAvoided(m.ranked(now, t))
	interfaceInUse := m.rank(now, inUse.candidate).interfaceRank()
	if inUse.candidate.Transport == SSH && len(ranked) > 0 {
		chosen := max(slices.IndexFunc(ranked, func(c Candidate) bool { return !c.Bound }), 0)
		interfaceInUse = m.rank(now, ranked[chosen]).interfaceRank()
	}
	for _, c := range ranked {
		if m.rank(now, c).interfaceRank().compare(interfaceInUse) <= 0 {
			m.dial(now, c, false)
			return true
		}
	}
	return false
}

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

// renewAt returns when to dial for a carrier with fresh keys in the place of a path's, if ever. An
// ssh connection is not renewed: that is a login, for which the user may be asked.
func (m *Manager) renewAt(p *path) (at time.Time, ok bool) {
	if p.candidate.Transport == SSH || m.dialing(p.standBy) {
		return at, false
	}
	due := p.born.Add(renewAfter - m.cfg.RenewEarly)
	at = later(due, earlier(m.traffic.Add(ActiveFor), due.Add(renewPause)))
	if !p.renewed.IsZero() {
		at = later(at, p.renewed.Add(renewPause))
	}
	return at, true
}

// renew dials for a carrier with fresh keys in the place of a path's.
func (m *Manager) renew(now time.Time, id ID) {
	if p := m.paths[id]; m.trusted(now, p) {
		p.renewed = now
		m.begin(now, dial{candidate: p.candidate, second: p.standBy, renewing: true, renews: id})
	}
}

// replaced puts a path in the place of the one that it was dialed to renew, and reports whether that was still
// there and answering. The old one stands by until it is pruned, so that what is under way on it arrives.
func (m *Manager) replaced(now time.Time, d *dial, fresh *path) bool {
	old := m.paths[d.renews]
	if !d.renewing || old == nil || old.candidate != d.candidate || !m.answering(now, old) {
		return false
	}
	fresh.standBy = old.standBy
	if fresh.standBy {
		m.end(d.renews)
		return true
	}
	m.standBy(d.renews)
	return true
}
