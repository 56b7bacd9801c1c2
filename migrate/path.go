package migrate

import "time"

const (
	// maxProbes is how many pings in a row go to a path that may have moved: the server learns the client's new
	// address from what is sent there.
	maxProbes = 20

	// maxExcuses is how often in a row a starved client begins to wait anew for a packet on a
	// path. A client that is always starved finds a dead path too, if late.
	maxExcuses = 4
)

// A path is what is known of a carrier.
type path struct {
	candidate Candidate
	standBy   bool      // it carries only pings
	born      time.Time // it was first heard
	since     time.Time // the same, or it was activated
	renewed   time.Time // when a fresh carrier was dialed for last, or zero
	rtt       time.Duration
	minRTT    time.Duration // since its packets have gone this way
	moved     int           // how often its packets have changed their way

	heard        time.Time     // when a packet arrived last
	interval     time.Duration // from then to the next ping: traffic since then makes no silence before it suspect
	pinged       time.Time     // when a ping was sent last
	pingedWhole  time.Time     // when a whole ping was sent last
	pingedFirst  time.Time     // when the first unanswered ping was sent, or zero
	pingedShort  bool          // the last ping was short
	unheardSince time.Time     // the first traffic after which no packet has arrived, or zero

	ranAgain time.Time // when this client ran again after it was starved, or zero
	excuses  int       // how often that was so since a packet arrived

	state        State     // as of the last update
	suspected    State     // Moving or Suspect if an event is the reason to suspect it, else 0
	probes       int       // pings since that event
	pingDue      bool      // the network has changed, perhaps under this path
	unsoundSince time.Time // since when it is unsound beside one that works, or zero
}

// suspect makes the path prove itself.
func (p *path) suspect(why State) { p.suspected, p.probes = why, 0 }

// hear records that a packet arrived. It may be reported late, so it is an answer only to what was sent before it.
func (p *path) hear(at time.Time, rtt time.Duration) {
	p.suspected = 0
	if at.After(p.heard) {
		p.heard = at
	}
	if !at.Before(p.unheardSince) {
		p.unheardSince = time.Time{}
	}
	if !at.Before(p.pingedFirst) {
		p.pingedFirst = time.Time{}
	}
	if at.After(p.ranAgain) {
		p.excuses = 0
	}
	if rtt > 0 {
		p.rtt = rtt
		if p.minRTT == 0 || rtt < p.minRTT {
			p.minRTT = rtt
		}
	}
}

// excuse makes silence count from now on: this client did not run before. It does not make a
// path better that was suspect already.
func (p *path) excuse(now time.Time) {
	if p.state == Live && p.excuses < maxExcuses {
		p.ranAgain = now
		p.excuses++
	}
}

// silentSince returns since when silence counts that began at a time: not before this client ran again.
func (p *path) silentSince(t time.Time) time.Time {
	return later(p.ranAgain, t)
}

// ackTimeout returns how long an ack may take on a path.
func (p *path) ackTimeout() time.Duration {
	if p.candidate.Transport != QUIC {
		return 2*p.rtt + TCPDelay
	}
	return max(noticeable, 2*p.rtt+grace)
}

// pingTimeout returns how long the answer to a ping may take.
func (p *path) pingTimeout() time.Duration { return max(pingInterval, 4*p.rtt) }

// trusted reports whether a path is believed to work.
func (m *Manager) trusted(now time.Time, p *path) bool {
	return p.suspected == 0 && now.Before(m.suspectAt(p))
}

// answering reports whether a path is trusted and no ack is overdue on it.
func (m *Manager) answering(now time.Time, p *path) bool {
	overdue := m.overdueAt(p)
	return m.trusted(now, p) && (overdue.IsZero() || now.Before(overdue))
}

// pathState returns the state that the link would have with this path alone.
func (m *Manager) pathState(now time.Time, p *path) State {
	switch {
	case m.trusted(now, p):
		return Live
	case !now.Before(m.offlineAt(p)):
		return Offline
	case p.suspected == Moving:
		return Moving
	}
	return Suspect
}

// offlineAt returns when the link is offline with this path alone if no packet arrives before.
func (m *Manager) offlineAt(p *path) time.Time {
	return p.silentSince(p.heard).Add(3 * m.cfg.keepaliveInterval())
}

// suspectAt returns when a path becomes suspect if no packet arrives before.
func (m *Manager) suspectAt(p *path) time.Time {
	at := m.offlineAt(p).Add(p.interval)
	if overdue := m.overdueAt(p); !overdue.IsZero() {
		// Packets that arrive meanwhile show that the ack may only be late, behind other data.
		// So it has another timeout from the last of them, but not more: perhaps nothing of
		// ours arrives at the server, which therefore sends the same again and again.
		timeout := p.ackTimeout()
		since := overdue.Add(-timeout)
		if p.heard.After(since) {
			since = p.heard
		}
		if since.After(overdue) {
			since = overdue
		}
		at = earlier(at, since.Add(timeout))
	}
	if !p.pingedFirst.IsZero() {
		at = earlier(at, p.silentSince(p.pingedFirst).Add(p.pingTimeout()))
	}
	return at
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// overdueAt returns when the ack that is waited for becomes overdue on a path. It returns
// zero if none is waited for, or for so long that it says nothing of the path.
func (m *Manager) overdueAt(p *path) time.Time {
	if m.unacked.IsZero() || p.standBy || p.heard.Sub(m.unacked) >= ActiveFor {
		return time.Time{}
	}
	since := m.unacked
	if p.since.After(since) {
		since = p.since
	}
	return p.silentSince(since).Add(p.ackTimeout())
}

// keepalive returns the time between pings at a time.
func (m *Manager) keepalive(now time.Time) time.Duration {
	if now.Sub(m.traffic) < ActiveFor {
		return m.cfg.keepaliveInterval()
	}
	return m.cfg.KeepaliveIdle
}

func (m *Manager) ping(now time.Time, id ID) {
	p := m.paths[id]
	p.pingedShort = p.suspected == 0 && !p.pingDue && p.pingedFirst.IsZero() && m.unacked.IsZero() &&
		now.Sub(later(p.pingedWhole, p.since)) < keepaliveIdle
	p.pinged, p.pingDue = now, false
	if !p.pingedShort {
		p.pingedWhole = now
	}
	if p.pingedFirst.IsZero() {
		p.pingedFirst = now
	}
	p.probes++
	m.do(Ping{id, p.pingedShort})
}

func (m *Manager) pingAt(now time.Time, p *path) time.Time {
	switch {
	case p.suspected != 0 && p.probes == 0 || p.pingDue:
		return now
	case p.suspected != 0 && p.probes < maxProbes:
		return p.pinged.Add(grace)
	case m.state != Live && p.candidate.Transport == QUIC && m.inputWaits(now):
		interval := urgentInterval
		if now.Sub(m.traffic) < maxRound {
			interval = grace
		}
		return later(p.pinged, m.redialing.since).Add(interval)
	case !p.pingedFirst.IsZero() && p.pingedShort:
		return p.pinged.Add(p.rtt*3/2 + grace)
	case !p.pingedFirst.IsZero():
		return p.pinged.Add(max(pingInterval, 2*p.rtt))
	case !p.unsoundSince.IsZero() && p.pinged.Before(p.unsoundSince):
		return now
	case !p.unsoundSince.IsZero():
		return p.pinged.Add(pingInterval)
	case len(m.paths) > 1 && !p.standBy && !p.unheardSince.IsZero():
		return p.unheardSince.Add(pingInterval)
	}
	return p.heard.Add(m.keepalive(p.heard))
}

// A Path describes a carrier.
type Path struct {
	ID        ID
	Candidate Candidate
	State     State // that the link would have with this path alone
	StandBy   bool
	Since     time.Time // it was first heard, or activated
	Heard     time.Time // when a packet arrived last
	Moved     int       // how often its packets have changed their way
}

// Paths describes the carriers, oldest first.
func (m *Manager) Paths() []Path {
	var paths []Path
	for _, id := range ordered(m.paths) {
		p := m.paths[id]
		paths = append(paths, Path{id, p.candidate, p.state, p.standBy, p.since, p.heard, p.moved})
	}
	return paths
}
