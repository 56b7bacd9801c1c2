package migrate

import (
	"slices"
	"time"
)

const (
	// knocksPerRound is how many knocks there are, while no input waits, from a round of dials to the next.
	// After slowAfter there is one, except in the first wideRounds rounds after the network has changed.
	knocksPerRound = 10

	// pingedTurns is of how many turns of a candidate one has a knock for the first pingedFor of an
	// outage, while a path of it is pinged as often: pings find out the same, unless the network lets
	// only new connections through. Later the congestion window of QUIC may hold them back.
	pingedTurns = 3
)

// knocks are sent on the candidates of QUIC in turn while no path is trusted. A candidate on which
// one is answered is dialed.
type knocks struct {
	next    time.Time // when the next is sent
	turns   int       // how many were sent
	last    time.Time
	answers backoff // of dials because of an answer
}

// knockAt returns when to send the next knock.
func (m *Manager) knockAt() time.Time {
	k := &m.redialing.knocks
	if soon := k.last.Add(urgentInterval); m.inputWaits(soon) && soon.Before(k.next) && !k.last.IsZero() {
		return soon
	}
	return k.next
}

// knock sends the next knock, or none if pings test its candidate. The first round leaves out the interfaces
// to avoid.
func (m *Manager) knock(now time.Time) {
	k := &m.redialing.knocks
	candidates := m.unanswered(now)
	if m.redialing.rounds < wideRounds {
		candidates = m.withoutAvoided(candidates)
	}
	interval := m.roundInterval(now)
	if !m.slow(now) || m.redialing.rounds <= wideRounds {
		interval = max(urgentInterval, interval/knocksPerRound)
	}
	k.last, k.next = now, now.Add(interval)
	if n := len(candidates); n > 0 {
		if c := candidates[k.turns%n]; k.turns/n%pingedTurns == 0 || !m.pings(now, c) {
			m.do(Knock{c})
		}
		k.turns++
	}
}

// pings reports whether a path of a candidate is pinged as often as there are knocks.
func (m *Manager) pings(now time.Time, c Candidate) bool {
	for _, p := range m.paths {
		if p.candidate == c {
			return m.inputWaits(now) && now.Sub(m.redialing.since) < pingedFor
		}
	}
	return false
}

// unanswered returns the candidates of QUIC, without those that were dialed just now because a knock
// was answered: the server may be slow because all its clients come back at once.
func (m *Manager) unanswered(now time.Time) []Candidate {
	recently := now.Add(-max(pingInterval, 2*m.rtt))
	return slices.DeleteFunc(m.ranked(now, QUIC), func(c Candidate) bool {
		for _, d := range m.dials {
			if d.answered && d.candidate == c && d.since.After(recently) {
				return true
			}
		}
		return false
	})
}

// answered dials a candidate on which a knock was answered.
func (m *Manager) answered(now time.Time, c Candidate) {
	k := &m.redialing.knocks
	if m.state == Live || !slices.Contains(m.candidates, c) || now.Before(k.answers.next) {
		return
	}
	k.answers.again(now, noticeable, maxRound)
	m.dial(now, c, false)
	d := m.dials[m.lastID]
	d.answered, d.leastTime = true, limits[QUIC].timeout
}
