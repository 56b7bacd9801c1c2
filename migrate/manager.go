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
	// Standby is a second path over another interface, which carries nothing until the first
	// is suspect.
	Standby
	// Redundant is a second path over another interface, which carries everything that the
	// first carries.
	Redundant
)

// Config has what a user can set. The zero value means the defaults.
type Config struct {
	// KeepaliveInterval is the time between pings on a silent path if there was traffic within
	// the last minute, KeepaliveIdle if there was none. The defaults are 5 s and 25 s.
	KeepaliveInterval, KeepaliveIdle time.Duration
	// StallLimit is how long the server may be silent before the link counts as offline. The
	// default is three times KeepaliveInterval.
	StallLimit time.Duration
	// Backoff has the times between rounds of dials to a server that does not answer. The last
	// one is repeated. The default is 250 ms, 500 ms, 1 s, 2 s.
	Backoff []time.Duration
	// Paths says how many paths there are. The default is Failover.
	Paths Paths
	// Prefer and Avoid are patterns of interface names (see path.Match). The first match in
	// Prefer is the best interface. Interfaces in Avoid are used only if no other works.
	Prefer, Avoid []string
}

func (c Config) withDefaults() Config {
	if c.KeepaliveInterval <= 0 {
		c.KeepaliveInterval = 5 * time.Second
	}
	if c.KeepaliveIdle <= 0 {
		c.KeepaliveIdle = 25 * time.Second
	}
	if c.StallLimit <= 0 {
		c.StallLimit = 3 * c.KeepaliveInterval
	}
	if len(c.Backoff) == 0 {
		c.Backoff = []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}
	}
	return c
}

// A State describes a link, or a path.
type State int

// The states. From Live on, each is worse than the one before.
const (
	// Connecting: there has been no carrier yet.
	Connecting State = iota
	// Live: a path is trusted: packets arrive, and an overdue ack has not lasted (see path.go).
	Live
	// Moving: the network has changed under the path. Other candidates are dialed.
	Moving
	// Suspect: an answer is overdue. Other candidates are dialed.
	Suspect
	// Offline: no path works. Dials continue in rounds.
	Offline
)

func (s State) String() string {
	return [...]string{"connecting", "live", "moving", "suspect", "offline"}[s]
}

// An Event is one of the types below, or nil if only time has passed.
type Event any

// Events.
type (
	// Started says that the session began on a carrier, which has the ID 0.
	Started struct{ Candidate Candidate }
	// NetworkChanged has all candidates that there are now.
	NetworkChanged struct{ Candidates []Candidate }
	// Woke says that the machine has slept: everything known may be out of date.
	Woke struct{}
	// Starved says that this client itself did not run until now, although a deadline had
	// passed: it was stopped, or the machine is busy. Silence until now says nothing, because
	// packets that arrived meanwhile are not read yet.
	Starved struct{}
	// Heard says that a packet from the server arrived on a carrier. The first one turns a
	// dial into a path.
	Heard struct {
		ID  ID
		RTT time.Duration // of the carrier, 0 if not known
		At  time.Time     // when the last packet arrived; zero means now
	}
	// Down says that a carrier has ended, or that a dial has failed.
	Down struct{ ID ID }
	// Unacked says since when input waits for an ack of the server, or zero if none does.
	Unacked struct{ Since time.Time }
	// Traffic says that input was sent or output was received.
	Traffic struct{}
)

// An Action is one of the types below.
type Action any

// Actions.
type (
	// Dial starts a dial under a new ID. A carrier that stands by carries only pings until it
	// is activated.
	Dial struct {
		ID        ID
		Candidate Candidate
		StandBy   bool
	}
	// Activate makes a carrier that stands by carry frames.
	Activate struct{ ID ID }
	// Close ends a carrier or a dial.
	Close struct{ ID ID }
	// Ping sends something on a carrier that the server's transport acknowledges.
	Ping struct{ ID ID }
)

// A Manager is the state of one client's link to its server. It is not safe for concurrent
// use.
type Manager struct {
	cfg Config

	state State
	since time.Time // of the state; from Moving on, since contact was lost

	candidates []Candidate
	remote     netip.AddrPort      // that answered last
	penalties  map[string]*penalty // by interface
	paths      map[ID]*path
	dials      map[ID]*dial
	lastID     ID

	moves   int       // how often another path has taken over
	unacked time.Time // since when input waits for an ack, or zero
	traffic time.Time // last

	ranAgain time.Time // when this client ran again after it was starved, or zero
	excuses  int       // how often that was so since a packet arrived

	redialing redialing
	second    secondPath
	actions   []Action // of the present call of Handle
	deadline  time.Time
}

// A dial is an attempt to get a carrier.
type dial struct {
	candidate Candidate
	since     time.Time
	second    bool // it is for a second path
}

// New returns a manager without carriers. It does nothing before its first event.
func New(cfg Config) *Manager {
	return &Manager{
		cfg:       cfg.withDefaults(),
		penalties: make(map[string]*penalty),
		paths:     make(map[ID]*path),
		dials:     make(map[ID]*dial),
	}
}

// State returns the state of the link, and since when it is so. A link that was suspect and
// turns out to be offline is offline since it was suspect.
func (m *Manager) State() (State, time.Time) { return m.state, m.since }

// Attempts returns how many rounds of dials there were since the server last answered.
func (m *Manager) Attempts() int { return m.redialing.attempts }

// Moves returns how often another path has taken over.
func (m *Manager) Moves() int { return m.moves }

// Steady reports whether there is one live path and no dial. Then good news changes nothing:
// Heard, Traffic and Unacked may be reported as late as at the deadline, except that
// input unacknowledged for longer than AckTimeout is reported at once, and so is traffic after
// a minute without any.
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
		m.paths[0] = &path{candidate: e.Candidate, since: now, heard: now}
		m.remote = e.Candidate.Remote
	case NetworkChanged:
		m.refresh(now, e.Candidates)
	case Woke:
		for _, p := range m.paths {
			p.suspect(Suspect)
		}
	case Starved:
		if m.state == Live && m.excuses < maxExcuses {
			m.ranAgain = now
			m.excuses++
		}
	case Heard:
		m.hear(now, e)
	case Down:
		delete(m.paths, e.ID)
		m.dialFailed(now, e.ID)
	case Unacked:
		m.unacked = e.Since
	case Traffic:
		m.traffic = now
		for _, p := range m.paths {
			if p.unheardSince.IsZero() {
				p.unheardSince = now
			}
		}
		m.retrySoon()
	}
	m.update(now)
	m.expireDials(now)
	if m.state == Live {
		m.prune(now)
		m.upgrade(now)
		m.ensureSecond(now)
	} else {
		m.redial(now)
	}
	m.ping(now)
	m.deadline = m.nextDeadline(now)
	return m.actions
}

// Deadline returns when to call Handle at the latest, or zero if only an event can change
// anything.
func (m *Manager) Deadline() time.Time { return m.deadline }

// nextDeadline returns the first time after now at which Handle would do something or the
// state would change without an event, or zero.
func (m *Manager) nextDeadline(now time.Time) time.Time {
	var next time.Time
	at := func(t time.Time) {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, p := range m.paths {
		if m.trusted(now, p) {
			at(m.suspectAt(p))
		} else {
			at(m.offlineAt(p))
		}
		at(m.pingAt(now, p))
		if !p.unsoundSince.IsZero() {
			at(p.unsoundSince.Add(pruneAfter))
		}
	}
	for _, d := range m.dials {
		if m.mayExpire(now, d) {
			at(d.since.Add(dialTimeout))
		}
	}
	if m.state != Live {
		at(m.redialing.next())
		return next
	}
	if _, t, ok := m.upgradeTo(now); ok {
		at(t)
	}
	if _, ok := m.secondCandidate(now); ok {
		at(m.second.nextDial)
	}
	for _, p := range m.penalties {
		at(p.until)
	}
	return next
}

func (m *Manager) do(a Action) { m.actions = append(m.actions, a) }

// ordered returns the keys of a map, oldest first.
func ordered[V any](m map[ID]V) []ID { return slices.Sorted(maps.Keys(m)) }

// hear records that a packet arrived on a carrier, or on a dial, which becomes a path.
func (m *Manager) hear(now time.Time, e Heard) {
	p := m.paths[e.ID]
	if d := m.dials[e.ID]; p == nil && d != nil {
		delete(m.dials, e.ID)
		p = &path{candidate: d.candidate, since: now, standBy: d.second && m.cfg.Paths == Standby}
		if !m.adopt(now, p, d.second) {
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
	if at.After(m.ranAgain) {
		m.excuses = 0
	}
}

// adopt closes the paths that a new one replaces, and all dials. It reports whether the new
// path is to be kept.
func (m *Manager) adopt(now time.Time, fresh *path, second bool) bool {
	if second {
		m.second.interval = 0
		return true
	}
	elsewhere := func(p *path) bool { return p.candidate.Interface != fresh.candidate.Interface }
	for _, p := range m.paths {
		if !p.standBy && elsewhere(p) && m.answering(now, p) && m.better(now, p.candidate, fresh.candidate) {
			return false // the path that was suspect works after all
		}
	}
	for _, id := range ordered(m.paths) {
		p := m.paths[id]
		answering := m.answering(now, p)
		if answering && elsewhere(p) && (p.standBy || m.cfg.Paths == Redundant) {
			continue
		}
		if !answering && elsewhere(p) {
			m.penalize(now, p.candidate.Interface)
		}
		delete(m.paths, id)
		m.do(Close{id})
	}
	for _, id := range ordered(m.dials) {
		delete(m.dials, id)
		m.do(Close{id})
	}
	m.remote = fresh.candidate.Remote
	m.moves++
	return true
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
	for _, id := range ordered(m.paths) {
		if p := m.paths[id]; state != Live && p.standBy && p.state == Live {
			p.standBy, p.since = false, now
			m.moves++
			m.do(Activate{id})
			state = Live
		}
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
