package migrate

import (
	"slices"
	"time"
)

const (
	// firstKnock is how long the first dials have to answer before the first knock.
	firstKnock = 100 * time.Millisecond

	// urgentKnock is the time between knocks while input waits: they cost 0.9 kB/s, and find a path
	// soon after it works again.
	urgentKnock = 100 * time.Millisecond

	// knocksPerRound is how many knocks there are, while no input waits, from a round of dials to the next.
	// After slowAfter there is one, except in the first wideRounds rounds after the network has changed.
	knocksPerRound = 10

	// pingedTurns is of how many turns of a candidate one has a knock for the first pingedFor of an
	// outage, while a path of it is pinged as often: pings find out the same, unless the network lets
	// only new connections through. Later the congestion window of QUIC may hold them back.
	pingedTurns = 3
	pingedFor   = 20 * time.Second

	// minAnswered and maxAnswered bound the time between dials because a knock was answered, which
	// doubles each time: perhaps something else than the server answers knocks.
	minAnswered = 250 * time.Millisecond
	maxAnswered = 2 * time.Second

	// answerFor is the least time that a dial because of an answered knock has before its candidate
	// is knocked on and dialed again: the network may have failed anew.
	answerFor = time.Second
)

// knocks are sent on the candidates of QUIC in turn while no path is trusted. A candidate on which
// one is answered is dialed.
type knocks struct {
	next    time.Time // when the next is sent
	turns   int       // how many were sent
	last    time.Time
	answers backoff // of dials because of an answer
}

// knockAt returns when to send the next knock, or zero if there is no candidate.
func (m *Manager) knockAt() time.Time {
	k := &m.redialing.knocks
	if len(m.candidates) == 0 {
		return time.Time{}
	}
	if soon := k.last.Add(urgentKnock); m.inputWaits(soon) && soon.Before(k.next) && !k.last.IsZero() {
		return soon
	}
	return k.next
}

// knock sends the next knock, or none if pings test its candidate. The first round leaves out the interfaces
// to avoid.
func (m *Manager) knock(now time.Time) {
	k := &m.redialing.knocks
	if at := m.knockAt(); at.IsZero() || now.Before(at) {
		return
	}
	candidates := m.unanswered(now)
	if m.redialing.rounds < wideRounds {
		candidates = m.withoutAvoided(candidates)
	}
	interval := m.roundInterval(now)
	if !m.slow(now) || m.redialing.rounds <= wideRounds {
		interval = max(urgentKnock, interval/knocksPerRound)
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
	recently := now.Add(-max(answerFor, 2*m.rtt))
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
	k.answers.again(now, minAnswered, maxAnswered)
	m.dial(now, c, false)
	d := m.dials[m.lastID]
	d.answered, d.leastTime = true, limits[QUIC].timeout
}
