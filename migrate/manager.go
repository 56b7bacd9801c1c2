package migrate

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"
)

// An ID names a carrier, or the dial that is to bring one.
type ID int

// Paths says how many paths a session has at a time.
type Paths int

const (
	// Failover is one path, replaced by another when it fails.
	Failover Paths = iota
	// Standby is a second path over another interface, which carries nothing until the first is suspect.
	Standby
	// Redundant is a second path over another interface, which carries everything that the first carries.
	Redundant
	// Aggregate is Standby, with bulk data over both interfaces.
	Aggregate
)

// Config has what a user can set. The zero value means the defaults.
type Config struct {
	// KeepaliveIdle is the time between pings on a silent path if there was no traffic within the last minute. The
	// default is 25 s. With traffic it is 5 s, or KeepaliveIdle if that is shorter.
	KeepaliveIdle time.Duration
	// Paths says how many paths there are. The default is Failover.
	Paths Paths
	// Prefer and Avoid are patterns of interface names (see path.Match). The first match in
	// Prefer is the best interface. Interfaces in Avoid are used only if no other works.
	Prefer, Avoid []string
	// RenewEarly is how much less than a day the keys of a carrier are used before a fresh one takes over. Drawn at
	// random, up to MaxRenewEarly, it keeps apart the clients that came together, as after a restart of the daemon.
	RenewEarly time.Duration
}

func (c Config) withDefaults() Config {
	if c.KeepaliveIdle <= 0 {
		c.KeepaliveIdle = keepaliveIdle
	}
	return c
}

// keepaliveInterval is the time between pings on a silent path that is in use.
func (c Config) keepaliveInterval() time.Duration { return min(keepaliveInterval, c.KeepaliveIdle) }

// A Manager is the state of one client's link to its server. It is not safe for concurrent use.
type Manager struct {
	cfg Config

	state State
	since time.Time // of the state; from Moving on, since contact was lost

	candidates []Candidate
	remote     netip.AddrPort // that answered last
	worked     Transport      // the one that was in use last in this network
	penalties  map[penaltyKey]*penalty
	paths      map[ID]*path
	dials      map[ID]*dial
	lastID     ID

	moves   int           // how often another path has taken over
	rtt     time.Duration // that was last measured, 0 if none was
	unacked time.Time     // since when input waits for an ack, or zero
	traffic time.Time     // last

	redialing redialing
	climb     climb
	bulk      bulk
	second    backoff  // for a second path
	actions   []Action // of the present call of Handle
	deadline  time.Time
}

// A dial is an attempt to get a carrier.
type dial struct {
	candidate Candidate
	since     time.Time
	second    bool // it is for a second path
	renewing  bool // it is for a fresh carrier in the place of the path renews
	renews    ID
	answered  bool          // the server has answered a knock on its candidate
	leastTime time.Duration // that it has while no path is trusted
}

// New returns a manager without carriers. It does nothing before its first event.
func New(cfg Config) *Manager {
	return &Manager{
		cfg:       cfg.withDefaults(),
		penalties: make(map[penaltyKey]*penalty),
		paths:     make(map[ID]*path),
		dials:     make(map[ID]*dial),
		bulk:      bulk{carriers: make(map[ID]*bulkCarrier)},
	}
}

// State returns the state of the link, and since when it is so. A link that was suspect and
// turns out to be offline is offline since it was suspect.
func (m *Manager) State() (State, time.Time) { return m.state, m.since }

// Attempts returns how many rounds of dials there were since the server last answered.
func (m *Manager) Attempts() int { return m.redialing.attempts }

// Moves returns how often another path has taken over.
func (m *Manager) Moves() int { return m.moves }

// Steady reports whether there is one live path and no dial. Then good news changes nothing: Heard, Traffic and
// Unacked may be reported as late as at the deadline, except that input unacknowledged for longer than AckTimeout is
// reported at once, and so is traffic after a minute without any.
func (m *Manager) Steady() bool {
	return m.state == Live && len(m.paths) == 1 && len(m.dials) == 0
}

// AckTimeout returns how long an ack may take before the quickest path is suspect.
func (m *Manager) AckTimeout() time.Duration {
	shortest := time.Duration(math.MaxInt64)
	for _, p := range m.paths {
		shortest = min(shortest, p.ackTimeout())
	}
	return shortest
}

// Handle takes an event and returns what to do now, in this order.
func (m *Manager) Handle(now time.Time, event Event) []Action {
	m.actions = nil
	switch e := event.(type) {
	case Started:
		m.paths[0] = &path{candidate: e.Candidate, born: now, since: now, heard: now, interval: m.cfg.keepaliveInterval()}
		m.inUse(e.Candidate)
		if e.Candidate.Transport == SSH {
			m.climb.next = now
		}
	case NetworkChanged:
		m.refresh(now, e.Candidates)
	case Woke:
		for _, p := range m.paths {
			p.suspect(Suspect)
		}
		m.redialTCP(now)
	case Starved:
		for _, p := range m.paths {
			p.excuse(now)
		}
	case Heard:
		m.hear(now, e)
	case Down:
		if p := m.paths[e.ID]; p != nil {
			m.redialing.pathEnded(now.Sub(p.born))
		}
		delete(m.paths, e.ID)
		m.bulkEnded(now, e.ID)
		m.dialFailed(now, e.ID)
	case Answered:
		m.answered(now, e.Candidate)
	case Unacked:
		m.unacked = e.Since
	case Bulk:
		m.handleBulk(now, e.Limited)
	case Traffic:
		m.traffic = now
		for _, p := range m.paths {
			if p.unheardSince.IsZero() {
				p.unheardSince = now
			}
		}
		m.retrySoon(now)
	}
	m.update(now)
	m.schedule(now, func(at time.Time, do func()) {
		if !at.After(now) {
			do()
		}
	})
	m.deadline = time.Time{}
	m.schedule(now, func(at time.Time, _ func()) {
		if at.After(now) && (m.deadline.IsZero() || at.Before(m.deadline)) {
			m.deadline = at
		}
	})
	return m.actions
}

// Deadline returns when to call Handle at the latest, or zero if only an event can change anything.
func (m *Manager) Deadline() time.Time { return m.deadline }

// schedule calls at with all that is to be done, and when, in the order in which it is done: it is the rule of when
// which candidate is dialed, knocked on or pinged.
func (m *Manager) schedule(now time.Time, at func(time.Time, func())) {
	for _, id := range ordered(m.dials) {
		at(m.expiresAt(m.dials[id]), func() {
			m.dialFailed(now, id)
			m.do(Abandon{id})
		})
	}
	if m.state == Live {
		m.scheduleBeside(now, at)
	} else {
		m.scheduleRedial(now, at)
	}
	m.scheduleBulk(now, at)
	for _, id := range ordered(m.paths) {
		p := m.paths[id]
		at(m.pingAt(now, p), func() { m.ping(now, id) })
		if m.trusted(now, p) {
			at(m.suspectAt(p), func() {})
		} else {
			at(m.offlineAt(p), func() {})
		}
	}
}

// end closes a path, or a dial.
func (m *Manager) end(id ID) {
	delete(m.paths, id)
	delete(m.dials, id)
	m.do(Close{id})
}

func (m *Manager) do(a Action) { m.actions = append(m.actions, a) }

// ordered returns the keys of a map, oldest first.
func ordered[V any](m map[ID]V) []ID { return slices.Sorted(maps.Keys(m)) }

// hear records that a packet arrived on a carrier, or on a dial, which becomes a path.
func (m *Manager) hear(now time.Time, e Heard) {
	if c := m.bulk.carriers[e.ID]; c != nil {
		c.heardAt = now
		return
	}
	p := m.paths[e.ID]
	if d := m.dials[e.ID]; p == nil && d != nil {
		delete(m.dials, e.ID)
		p = &path{candidate: d.candidate, born: now, since: now, standBy: d.second && m.cfg.Paths != Redundant}
		if !m.replaced(now, d, p) && !m.adopt(now, p, d.second) {
			m.do(Close{e.ID})
			return
		}
		m.paths[e.ID] = p
	}
	if p == nil {
		return // closed meanwhile
	}
	at := e.At
	if at.IsZero() {
		at = now
	}
	p.hear(at, e.RTT)
	p.interval = m.keepalive(p.heard)
	m.rtt = p.rtt
}

// update is the only place that changes the state of the link and of its paths.
func (m *Manager) update(now time.Time) {
	state := Offline
	for _, p := range m.paths {
		p.state = m.pathState(now, p)
		if !p.standBy {
			state = min(state, p.state)
		}
	}
	if state != Live && m.activate(now) {
		state = Live
	}
	if state == Offline && m.state == Connecting {
		state = Connecting
	}
	lost := func(s State) bool { return s > Live }
	if lost(state) != lost(m.state) || m.since.IsZero() {
		m.since = now
	}
	m.state = state
	if state == Live {
		m.redialing.stop()
	} else if m.redialing.since.IsZero() {
		m.redialing.start(now)
	}
}
