package migrate

import "time"

// renewAt returns when to dial for a carrier with fresh keys in the place of a path's, if ever. An
// ssh connection is not renewed: that is a login, for which the user may be asked.
func (m *Manager) renewAt(p *path) (at time.Time, ok bool) {
	if p.candidate.Transport == SSH || m.dialing(p.standBy) {
		return at, false
	}
	due := p.born.Add(renewAfter - m.cfg.RenewEarly)
	at = later(due, earlier(m.traffic.Add(activeFor), due.Add(renewPause)))
	if !p.renewed.IsZero() {
		at = later(at, p.renewed.Add(renewPause))
	}
	return at, true
}

// renew dials for fresh carriers, beside the paths that are due.
func (m *Manager) renew(now time.Time) {
	for _, id := range ordered(m.paths) {
		p := m.paths[id]
		if at, ok := m.renewAt(p); ok && !now.Before(at) && m.trusted(now, p) {
			p.renewed = now
			m.begin(now, dial{candidate: p.candidate, second: p.standBy, renewing: true, renews: id})
		}
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
		delete(m.paths, d.renews)
		m.do(Close{d.renews})
		return true
	}
	m.standBy(d.renews)
	return true
}
