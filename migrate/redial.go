package migrate

import "time"

const (
	// secondRound is the time from a first round of dials to the second: its packets are not
	// lost together with those of the first.
	secondRound = 250 * time.Millisecond

	// urgentRound is the time between rounds while input waits for an ack, for at most
	// urgentFor.
	urgentRound = 100 * time.Millisecond
	urgentFor   = time.Minute

	// typedRound is the time between rounds when something is typed after that.
	typedRound = time.Second

	// slowRound is the time between rounds after slowAfter without contact: the user has
	// probably left, and dials cost battery.
	slowRound = 10 * time.Second
	slowAfter = 15 * time.Minute

	// nextCandidate is how long a candidate has to answer before the next best is dialed as
	// well: long enough that the better one wins if both work, too short to be noticed.
	nextCandidate = 50 * time.Millisecond

	// MaxDials is how many dials run at once.
	MaxDials = 16

	// dialTimeout is how long a dial may take before it makes room for another: some round
	// trips on the slowest paths.
	dialTimeout = 3 * time.Second

	// holdDown is how long a path is used at least before it is left for a better one while
	// it works.
	holdDown = 5 * time.Second

	// firstSecond and maxSecond bound the time between dials for a second path, which doubles
	// each time.
	firstSecond = 2 * time.Second
	maxSecond   = time.Minute
)

// A redialing is the rounds of dials while no path is trusted. Each round dials all
// candidates, one after the other.
type redialing struct {
	since     time.Time // since when no path is trusted, or zero
	rounds    int       // since then
	attempts  int       // rounds that had a candidate
	lastRound time.Time // the last one that had a candidate
	nextRound time.Time
	round     []Candidate // what is left of this round
	nextDial  time.Time   // of this round
}

func (r *redialing) start(now time.Time) {
	r.since, r.rounds, r.attempts = now, 0, 0
	r.retryNow(now)
}

func (r *redialing) stop() { r.since, r.round = time.Time{}, nil }

// next returns when to dial next.
func (r *redialing) next() time.Time {
	if len(r.round) > 0 {
		return r.nextDial
	}
	return r.nextRound
}

// retryNow starts the next round at once, or soon after one that has just started.
func (r *redialing) retryNow(now time.Time) {
	r.round = nil
	r.nextRound = now
	if soonest := r.lastRound.Add(urgentRound); soonest.After(now) {
		r.nextRound = soonest
	}
}

// retrySoon starts the next round soon: the user types although the link is known to be
// offline.
func (m *Manager) retrySoon() {
	r := &m.redialing
	if soon := r.lastRound.Add(typedRound); m.state == Offline && r.nextRound.After(soon) {
		r.nextRound = soon
	}
}

// redial dials all candidates, in rounds.
func (m *Manager) redial(now time.Time) {
	r := &m.redialing
	if soon := now.Add(urgentRound); m.inputWaits(now) && r.nextRound.After(soon) {
		r.nextRound = soon
	}
	for !now.Before(r.next()) {
		if len(r.round) == 0 {
			m.beginRound(now)
			continue
		}
		r.nextDial = now.Add(nextCandidate)
		m.dial(now, r.round[0], false)
		r.round = r.round[1:]
	}
}

// beginRound begins a round. The first one leaves out the interfaces to avoid.
func (m *Manager) beginRound(now time.Time) {
	r := &m.redialing
	r.round = m.ranked(now)
	if r.rounds == 0 {
		r.round = m.withoutAvoided(r.round)
	}
	if len(r.round) > 0 {
		r.attempts++
		r.lastRound = now
	}
	r.nextDial = now
	r.nextRound = now.Add(m.roundInterval(now))
	r.rounds++
}

// roundInterval returns the time from a round to the next.
func (m *Manager) roundInterval(now time.Time) time.Duration {
	r := &m.redialing
	switch {
	case r.rounds == 0:
		return secondRound
	case m.inputWaits(now):
		return urgentRound
	case now.Sub(r.since) > slowAfter:
		return slowRound
	}
	return m.cfg.Backoff[min(r.rounds-1, len(m.cfg.Backoff)-1)]
}

// inputWaits reports whether input waits for an ack, and not for so long that the user has
// left.
func (m *Manager) inputWaits(now time.Time) bool {
	return !m.unacked.IsZero() && now.Sub(m.unacked) < urgentFor
}

func (m *Manager) dial(now time.Time, c Candidate, second bool) {
	m.makeRoom(now)
	m.lastID++
	m.dials[m.lastID] = &dial{candidate: c, since: now, second: second}
	m.do(Dial{m.lastID, c, second && m.cfg.Paths == Standby})
}

// makeRoom ends a dial if there are MaxDials. It spares the oldest until dialTimeout, for a
// path that takes longer to answer than the others may run.
func (m *Manager) makeRoom(now time.Time) {
	if len(m.dials) < MaxDials {
		return
	}
	ids := ordered(m.dials)
	id := ids[1]
	if now.Sub(m.dials[ids[0]].since) >= dialTimeout {
		id = ids[0]
	}
	delete(m.dials, id)
	m.do(Close{id})
}

// dialFailed removes a dial that has failed. If the link is live without it, its interface
// gets a penalty.
func (m *Manager) dialFailed(now time.Time, id ID) {
	d := m.dials[id]
	if d == nil {
		return
	}
	delete(m.dials, id)
	for _, p := range m.paths {
		if p.candidate.Interface == d.candidate.Interface && m.trusted(now, p) {
			return
		}
	}
	if m.state == Live && !d.second {
		m.penalize(now, d.candidate.Interface)
	}
}

// mayExpire reports whether a dial ends at dialTimeout. While input waits, a dial ends only
// if there is no room for another.
func (m *Manager) mayExpire(now time.Time, d *dial) bool {
	return m.state == Live || d.second || !m.inputWaits(now)
}

// expireDials ends the dials that take too long.
func (m *Manager) expireDials(now time.Time) {
	for _, id := range ordered(m.dials) {
		d := m.dials[id]
		if m.mayExpire(now, d) && !now.Before(d.since.Add(dialTimeout)) {
			m.dialFailed(now, id)
			m.do(Close{id})
		}
	}
}

// dialing reports whether there is a dial, for a second path or for the only one.
func (m *Manager) dialing(second bool) bool {
	for _, d := range m.dials {
		if d.second == second {
			return true
		}
	}
	return false
}

// upgradeTo returns a candidate that is better than the path in use, and when to dial it:
// a path that works is kept for holdDown.
func (m *Manager) upgradeTo(now time.Time) (best Candidate, at time.Time, ok bool) {
	if m.cfg.Paths == Redundant || m.dialing(false) {
		return best, at, false
	}
	ranked := m.ranked(now)
	if len(ranked) == 0 {
		return best, at, false
	}
	best = ranked[0]
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

// A secondPath says when to dial for a second path.
type secondPath struct {
	nextDial time.Time
	interval time.Duration // from the last dial to the next
}

// secondCandidate returns the candidate for a second path, if there is to be one and neither
// a path nor a dial is there for it.
func (m *Manager) secondCandidate(now time.Time) (c Candidate, ok bool) {
	if m.cfg.Paths == Failover || m.dialing(true) {
		return c, false
	}
	taken := make(map[string]bool)
	for _, p := range m.paths {
		taken[p.candidate.Interface] = true
	}
	if len(taken) > 1 {
		return c, false
	}
	for _, c := range m.ranked(now) {
		if !taken[c.Interface] && !m.avoided(c) {
			return c, true
		}
	}
	return c, false
}

// ensureSecond dials for a second path over another interface, if there is to be one.
func (m *Manager) ensureSecond(now time.Time) {
	c, ok := m.secondCandidate(now)
	if s := &m.second; ok && !now.Before(s.nextDial) {
		s.interval = min(max(2*s.interval, firstSecond), maxSecond)
		s.nextDial = now.Add(s.interval)
		m.dial(now, c, true)
	}
}
