package migrate

import (
	"slices"
	"time"
)

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

// upgradeTo returns a candidate that is better than the path in use, and when to dial it:
// a path that works is kept for holdDown. Candidates with a better transport are for climb.
func (m *Manager) upgradeTo(now time.Time) (best Candidate, at time.Time, ok bool) {
	inUse := m.bestPath(now)
	if inUse == nil || m.cfg.Paths == Redundant || m.dialing(false) {
		return best, at, false
	}
	for t := inUse.candidate.Transport; t < SSH; t++ {
		ranked := m.ranked(now, t)
		if len(ranked) > 0 && (!ok || m.better(now, ranked[0], best)) {
			best, ok = ranked[0], true
		}
	}
	if !ok {
		return best, at, false
	}
	for _, p := range m.paths {
		if p.standBy {
			continue
		}
		if best.Interface == p.candidate.Interface || !m.better(now, best, p.candidate) {
			return best, at, false
		}
		if end := p.since.Add(holdDown); end.After(at) {
			at = end
		}
	}
	return best, at, true
}

// upgrade dials a candidate that is better than the path in use.
func (m *Manager) upgrade(now time.Time) {
	if c, at, ok := m.upgradeTo(now); ok && !now.Before(at) {
		m.dial(now, c, false)
	}
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
	if next := c.last.Add(after); !c.next.IsZero() && next.Before(c.next) {
		c.next = next
	}
}

// climbUp dials better transports than the one in use, one dial of each at a time.
func (m *Manager) climbUp(now time.Time) {
	c := &m.climb
	inUse := m.bestPath(now)
	if inUse == nil || inUse.candidate.Transport == QUIC {
		*c = climb{}
		return
	}
	if c.next.IsZero() {
		c.last = now
		c.again(now, firstClimb, maxClimb)
	}
	if !now.Before(c.next) && m.dialBetter(now, inUse, QUIC) {
		c.last = now
		c.again(now, firstClimb, maxClimb)
		if inUse.candidate.Transport == SSH {
			c.nextTCP = now.Add(tcpDelay)
		}
	}
	if !c.nextTCP.IsZero() && !now.Before(c.nextTCP) {
		c.nextTCP = time.Time{}
		m.dialBetter(now, inUse, TCP)
	}
}

// dialBetter dials the best candidate of a transport beside the path in use, unless the
// interface of that is better. SSH uses the one that the system chooses. It reports whether
// there is such a candidate.
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
