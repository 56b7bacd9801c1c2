package migrate

import (
	"slices"
	"time"
)

const (
	// wideRounds is how many rounds dial all candidates. Each later one dials one of them, in turn:
	// a dial costs some packets of 1200 bytes, and knocks find the path that works.
	wideRounds = 2

	// MaxDials is how many dials of QUIC run at once.
	MaxDials = 16
)

// A redialing is the rounds of dials while no path is trusted. Each round dials the candidates
// of QUIC, one after the other, and those of TCP if QUIC does not answer. SSH is dialed alone.
type redialing struct {
	since     time.Time // since when no path is trusted, or zero
	rounds    int       // since then
	attempts  int       // rounds that had a candidate
	turns     int       // rounds that dialed one of the candidates, since the candidates changed
	lastRound time.Time // the last one that had a candidate
	nextRound time.Time
	quic      sequence // what is left of this round

	least       time.Duration // the least that this round's dials have
	patientLeft int           // how many more rounds have a patient dial
	nextPatient time.Time     // when each candidate is to have such a dial again

	nextTCP time.Time // when to dial the candidates of TCP, or zero
	lastTCP time.Time // when that was done last
	tcp     sequence

	ended  backoff // of the first round after paths that ended soon
	ssh    backoff
	knocks knocks
}

// A sequence is candidates that are dialed one after the other.
type sequence struct {
	left []Candidate
	next time.Time // when to dial the first of them
}

// at returns when to dial the next candidate or, if none is left, the given time.
func (s *sequence) at(begin time.Time) time.Time {
	if len(s.left) > 0 {
		return s.next
	}
	return begin
}

// A backoff says when to do something again that has failed.
type backoff struct {
	next     time.Time
	interval time.Duration // from the last time to the next
}

// again schedules the next time, after an interval that doubles between two bounds.
func (b *backoff) again(now time.Time, shortest, longest time.Duration) {
	b.interval = min(max(2*b.interval, shortest), longest)
	b.next = now.Add(b.interval)
}

func (r *redialing) start(now time.Time) {
	r.since, r.rounds, r.attempts = now, 0, 0
	r.nextTCP = time.Time{}
	r.knocks = knocks{next: now.Add(urgentInterval)}
	r.retryNow(now)
	if now.Before(r.ended.next) {
		r.rounds, r.nextRound, r.knocks.next = wideRounds, r.ended.next, r.ended.next.Add(urgentInterval)
	}
}

// pathEnded records how long a path lived that its server has ended. A server that accepts carriers and ends them at
// once is dialed as seldom as one that does not answer.
func (r *redialing) pathEnded(lived time.Duration) {
	if lived >= holdDown {
		r.ended = backoff{}
		return
	}
	r.ended.again(r.lastRound, urgentInterval, maxRound)
}

func (r *redialing) stop() {
	r.since = time.Time{}
	r.quic.left, r.tcp.left = nil, nil
}

// retryNow starts the next round at once, or soon after one that has just started.
func (r *redialing) retryNow(now time.Time) {
	r.quic.left, r.tcp.left = nil, nil
	r.knocks.answers = backoff{}
	r.knocks.next = earlier(r.knocks.next, now.Add(urgentInterval))
	r.nextRound = later(now, r.lastRound.Add(urgentInterval))
}

// retrySoon starts the next round soon: the user types although the link is known to be
// offline. There is no need while input that waits makes knocks frequent.
func (m *Manager) retrySoon(now time.Time) {
	r := &m.redialing
	if soon := r.lastRound.Add(pingInterval); m.state == Offline && !m.inputWaits(now) && r.nextRound.After(soon) {
		r.nextRound = soon
	}
}

// scheduleRedial schedules what looks for a path while none is trusted: rounds of dials, and knocks.
func (m *Manager) scheduleRedial(now time.Time, at func(time.Time, func())) {
	r := &m.redialing
	at(r.quic.at(r.nextRound), func() {
		for !now.Before(r.quic.at(r.nextRound)) {
			if len(r.quic.left) == 0 {
				m.beginRound(now)
			}
			m.dialNext(now, &r.quic)
		}
	})
	if t := r.tcp.at(r.nextTCP); !t.IsZero() {
		at(t, func() {
			if len(r.tcp.left) == 0 {
				m.beginTCP(now)
			}
			m.dialNext(now, &r.tcp)
		})
	}
	if c := (Candidate{Transport: SSH}); slices.Contains(m.candidates, c) && m.count(SSH) == 0 {
		t := r.since
		if m.worked != SSH || len(m.paths) > 0 {
			t = t.Add(dialTime)
		}
		at(later(t, r.ssh.next), func() {
			r.ssh.again(now, holdDown, ActiveFor)
			m.dial(now, c, false)
		})
	}
	if len(m.candidates) > 0 {
		at(m.knockAt(), func() { m.knock(now) })
	}
}

func (m *Manager) dialNext(now time.Time, s *sequence) {
	if len(s.left) > 0 {
		c := s.left[0]
		s.left, s.next = s.left[1:], now.Add(grace)
		m.dial(now, c, false)
	}
}

// beginRound begins a round. The first one leaves out the interfaces to avoid.
func (m *Manager) beginRound(now time.Time) {
	r := &m.redialing
	r.quic.left = m.unanswered(now)
	r.least = laterDial
	if r.rounds == 0 || m.rtt == 0 {
		r.least = firstDial
	}
	switch n := len(r.quic.left); {
	case r.rounds == 0:
		r.turns = 0
		r.quic.left = m.withoutAvoided(r.quic.left)
	case r.rounds >= wideRounds && n > 0:
		r.dialOne(now, n)
	}
	if len(r.quic.left) > 0 {
		r.attempts++
		r.lastRound = now
	}
	if r.nextTCP.IsZero() {
		r.nextTCP = later(now, r.lastTCP.Add(pingInterval))
		if m.worked < TCP {
			r.nextTCP = later(r.nextTCP, now.Add(TCPDelay))
		}
	}
	r.nextRound = now.Add(m.roundInterval(now))
	r.rounds++
}

// dialOne leaves one of n candidates in the round, in turn.
func (r *redialing) dialOne(now time.Time, n int) {
	if r.turns == 0 || !now.Before(r.nextPatient) {
		r.patientLeft, r.nextPatient = n, now.Add(patientInterval)
	}
	patient := r.patientLeft > 0
	switch {
	case patient && r.turns < n:
		r.least = patientDial
	case patient:
		r.least = dialTime
	}
	r.quic.left = r.quic.left[r.turns%n:][:1]
	r.patientLeft--
	r.turns++
}

// beginTCP begins the part of a round that dials TCP. The first one leaves out the interfaces to avoid.
func (m *Manager) beginTCP(now time.Time) {
	r := &m.redialing
	r.tcp.left = m.ranked(now, TCP)
	if r.lastTCP.Before(r.since) {
		r.tcp.left = m.withoutAvoided(r.tcp.left)
	}
	r.nextTCP, r.lastTCP = time.Time{}, now // the next round sets it
	if m.inputWaits(now) {
		r.nextTCP = now.Add(pingInterval)
	}
}

// redialTCP dials TCP anew after a sleep, and ends dials from before: each repeats its first packet ever later, and a browser
// begins no other beside one that is not answered.
func (m *Manager) redialTCP(now time.Time) {
	r := &m.redialing
	if now.Sub(r.lastTCP) < urgentInterval {
		return
	}
	for _, id := range ordered(m.dials) {
		if m.dials[id].candidate.Transport == TCP {
			m.end(id)
		}
	}
	r.lastTCP = time.Time{}
	if !r.nextTCP.IsZero() {
		r.nextTCP = now
		if m.worked < TCP {
			r.nextTCP = now.Add(TCPDelay)
		}
	}
}

// retrySSH dials SSH anew in a network that has changed, if it was dialed some time ago.
func (m *Manager) retrySSH(now time.Time) {
	for _, id := range ordered(m.dials) {
		d := m.dials[id]
		if d.candidate.Transport == SSH && now.Sub(d.since) >= holdDown {
			m.end(id)
		}
	}
	if b := &m.redialing.ssh; b.interval > holdDown {
		b.next, b.interval = b.next.Add(holdDown-b.interval), holdDown
	}
}

// roundInterval returns the time from a round to the next.
func (m *Manager) roundInterval(now time.Time) time.Duration {
	r := &m.redialing
	switch {
	case r.rounds == 0:
		return noticeable
	case m.slow(now):
		return slowRound
	}
	interval := min(noticeable<<min(r.rounds-1, 8), maxRound)
	if r.rounds >= wideRounds && r.patientLeft <= 0 && m.inputWaits(now) {
		interval *= 2 // knocks are frequent
	}
	return interval
}

// slow reports whether no path has been trusted for so long that the user has probably left.
func (m *Manager) slow(now time.Time) bool { return now.Sub(m.redialing.since) > slowAfter }

// inputWaits reports whether input waits for an ack, and not for so long that the user has left.
func (m *Manager) inputWaits(now time.Time) bool {
	return !m.unacked.IsZero() && now.Sub(m.unacked) < ActiveFor
}

func (m *Manager) dial(now time.Time, c Candidate, second bool) {
	m.begin(now, dial{candidate: c, second: second})
}

// begin starts a dial.
func (m *Manager) begin(now time.Time, d dial) {
	c := d.candidate
	m.makeRoom(c.Transport)
	m.lastID++
	d.since, d.leastTime = now, m.redialing.least
	if m.state == Live || c.Transport != QUIC {
		d.leastTime = limits[c.Transport].timeout
	}
	m.dials[m.lastID] = &d
	m.do(Dial{ID: m.lastID, Candidate: c, Fresh: d.renewing, StandBy: d.second && m.cfg.Paths != Redundant})
}

// makeRoom ends a dial if there are as many of a transport as may be. It spares the oldest, for a
// path that takes longer to answer than the others may run.
func (m *Manager) makeRoom(t Transport) {
	if m.count(t) < limits[t].dials {
		return
	}
	ids := slices.DeleteFunc(ordered(m.dials), func(id ID) bool { return m.dials[id].candidate.Transport != t })
	id := ids[min(1, len(ids)-1)]
	m.end(id)
}

// count returns how many dials of a transport run.
func (m *Manager) count(t Transport) (n int) {
	for _, d := range m.dials {
		if d.candidate.Transport == t {
			n++
		}
	}
	return n
}

// dialFailed removes a dial that has failed. If the link is live without it, its interface gets a penalty, unless a path
// in use is over that: one that stands by says nothing, and without a penalty the interface would be dialed again at once.
// SSH is over the interface that the system chooses.
func (m *Manager) dialFailed(now time.Time, id ID) {
	d := m.dials[id]
	if d == nil {
		return
	}
	delete(m.dials, id)
	for _, p := range m.paths {
		same := p.candidate.Interface == d.candidate.Interface || p.candidate.Transport == SSH && !d.candidate.Bound
		if same && !p.standBy && m.trusted(now, p) {
			return
		}
	}
	if m.state == Live && !d.second {
		m.penalize(now, d.candidate)
	}
}

// expiresAt returns when a dial ends without an answer. Most of those that begin while no path is
// trusted end early: each flight of a dial is longer after the one before, and a new one begins anew.
func (m *Manager) expiresAt(d *dial) time.Time {
	longest := limits[d.candidate.Transport].timeout
	if m.state != Live {
		longest = min(longest, max(d.leastTime, m.rtt*3/2))
	}
	return d.since.Add(longest)
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
