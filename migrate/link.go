package migrate

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// An ID names a carrier or an attempt to get one.
type ID int

// Paths says how many paths a link has.
type Paths int

const (
	// Failover is one path, replaced by another when it fails.
	Failover Paths = iota
	// Standby is a second one over another interface, which carries nothing
	// until the first is in doubt.
	Standby
	// Redundant is a second one over another interface, which carries all that
	// the first does.
	Redundant
)

// Config has what a person can set.
type Config struct {
	// KeepaliveInterval and KeepaliveIdle are the times between pings with
	// and without traffic within the last minute.
	KeepaliveInterval, KeepaliveIdle time.Duration
	// StallLimit is how long a server may be silent before it is suspected
	// although nothing was typed.
	StallLimit time.Duration
	// Backoff are the waits between rounds of attempts to reach a server that
	// does not answer. The last is repeated.
	Backoff []time.Duration
	// Paths says how many paths there are to be.
	Paths Paths
	// Prefer and Avoid are patterns of interface names (see path.Match): the
	// first to match in Prefer is best, those in Avoid are used when no other
	// works.
	Prefer, Avoid []string
}

// A State is what is believed of the link.
type State int

// The states.
const (
	// Connecting: there is no carrier yet.
	Connecting State = iota
	// Live: the server was heard and owes nothing. Later states are worse.
	Live
	// Moving: the network has changed under the path. Others are tried.
	Moving
	// Suspect: the server should have been heard. Others are tried.
	Suspect
	// Offline: nothing works. It is tried again.
	Offline
)

func (s State) String() string {
	return [...]string{"connecting", "live", "moving", "suspect", "offline"}[s]
}

// An Event is something that happened: one of the types below; or nil for the
// passing of time.
type Event any

// Events.
type (
	// Begun: the session began on a carrier, which has the ID 0.
	Begun struct{ Way Way }
	// Network: these are the ways to the server now.
	Network struct{ Ways []Way }
	// Woke: the machine has slept. Whatever it knew may have changed.
	Woke struct{}
	// Heard: a carrier has brought something from the server. The first time,
	// it is how an attempt has become a carrier.
	Heard struct {
		ID  ID
		RTT time.Duration // of the carrier, 0 if not known
	}
	// Down: a carrier has ended, or an attempt has led to nothing.
	Down struct{ ID ID }
	// Waiting: the server owes an ack since then, or none if that is zero.
	Waiting struct{ Since time.Time }
	// Traffic: something was sent or received that matters to the person.
	Traffic struct{}
)

// An Action is something to do: one of the types below.
type Action any

// Actions.
type (
	// Dial starts an attempt to get a carrier, under a new ID. One that stands
	// by is to carry nothing but pings before it is activated.
	Dial struct {
		ID      ID
		Way     Way
		StandBy bool
	}
	// Activate has a carrier that stands by carry what the others do.
	Activate struct{ ID ID }
	// Close ends a carrier, or an attempt, that is no longer of use.
	Close struct{ ID ID }
	// Ping has a carrier send something that the server's end answers.
	Ping struct{ ID ID }
)

// A Link is the state of one client's connection to its server.
type Link struct {
	cfg Config

	state State
	since time.Time // of the state, or when contact was lost

	ways   []Way
	remote netip.AddrPort    // at which the server was reached last
	faults map[string]*fault // by interface
	paths  map[ID]*path
	dials  map[ID]*dial
	last   ID

	resumed int // how often a path was replaced

	waiting time.Time // since when the server owes an ack
	traffic time.Time // when there was some last

	// While there is no path that is trusted:
	seeking   time.Time // since when one has been sought, or zero
	rounds    int       // since then
	attempts  int       // rounds in which there was a way to try
	lastRound time.Time
	nextRound time.Time
	round     []Way     // what is left to try in this round
	nextDial  time.Time // of the round

	// For a second path:
	nextSpare  time.Time
	spareAfter time.Duration // the wait after the next attempt

	wake    time.Time // when to look again
	actions []Action
}

// A dial is an attempt that nothing was heard of.
type dial struct {
	way   Way
	since time.Time
	spare bool // for a second path
}

// NewLink returns a link without carriers. It does nothing before its first
// event.
func NewLink(cfg Config) *Link {
	return &Link{
		cfg:    cfg,
		faults: make(map[string]*fault),
		paths:  make(map[ID]*path),
		dials:  make(map[ID]*dial),
	}
}

// State returns what is believed of the link, and since when. A doubt that
// proves true is offline since it arose.
func (l *Link) State() (State, time.Time) { return l.state, l.since }

// Attempts returns how often the server has been tried since it was last heard.
func (l *Link) Attempts() int { return l.attempts }

// Resumed returns how often another path has taken over.
func (l *Link) Resumed() int { return l.resumed }

// Handle takes an event and returns what is to be done now, in that order.
func (l *Link) Handle(now time.Time, event Event) []Action {
	l.wake, l.actions = time.Time{}, nil
	switch e := event.(type) {
	case Begun:
		l.paths[0] = &path{way: e.Way, since: now, heard: now}
		l.remote = e.Way.Remote
	case Network:
		l.survey(now, e.Ways)
	case Woke:
		for _, p := range l.paths {
			p.doubt(Suspect)
		}
	case Heard:
		l.hear(now, e)
	case Down:
		delete(l.paths, e.ID)
		l.failed(now, e.ID)
	case Waiting:
		l.waiting = e.Since
	case Traffic:
		l.traffic = now
		for _, p := range l.paths {
			if p.owed.IsZero() {
				p.owed = now
			}
		}
		l.insist()
	}
	l.judge(now)
	l.expire(now)
	if l.state == Live {
		l.tidy(now)
		l.improve(now)
		l.double(now)
	} else {
		l.seek(now)
	}
	l.ping(now)
	return l.actions
}

// Deadline returns when Handle is to be called at the latest, or zero if only
// an event can change anything.
func (l *Link) Deadline() time.Time { return l.wake }

// due reports whether a time has come. If not, it is looked at again then.
func (l *Link) due(now, at time.Time) bool {
	if !now.Before(at) {
		return true
	}
	if l.wake.IsZero() || at.Before(l.wake) {
		l.wake = at
	}
	return false
}

func (l *Link) do(a Action) { l.actions = append(l.actions, a) }

// ordered returns the keys of a map, oldest first.
func ordered[V any](m map[ID]V) []ID { return slices.Sorted(maps.Keys(m)) }

// hear takes note that the server was heard on a carrier.
func (l *Link) hear(now time.Time, e Heard) {
	p := l.paths[e.ID]
	if d := l.dials[e.ID]; p == nil && d != nil {
		delete(l.dials, e.ID)
		p = &path{way: d.way, since: now, standBy: d.spare && l.cfg.Paths == Standby}
		if !l.adopt(now, p, d.spare) {
			l.do(Close{e.ID})
			return
		}
		l.paths[e.ID] = p
	}
	if p == nil {
		return // given up meanwhile
	}
	p.heard, p.doubted, p.owed = now, 0, time.Time{}
	if e.RTT > 0 {
		p.rtt = e.RTT
	}
}

// adopt gives up the paths that a new one replaces, and all attempts. It reports
// whether the new one is wanted.
func (l *Link) adopt(now time.Time, fresh *path, spare bool) bool {
	if spare {
		l.spareAfter = 0
		return true
	}
	elsewhere := func(p *path) bool { return p.way.Interface != fresh.way.Interface }
	for _, p := range l.paths {
		if !p.standBy && elsewhere(p) && l.answers(now, p) && l.better(now, p.way, fresh.way) {
			return false // the path that was in doubt works after all
		}
	}
	for _, id := range ordered(l.paths) {
		p := l.paths[id]
		trusted := l.answers(now, p)
		if trusted && elsewhere(p) && (p.standBy || l.cfg.Paths == Redundant) {
			continue
		}
		if !trusted && elsewhere(p) {
			l.blame(now, p.way.Interface)
		}
		delete(l.paths, id)
		l.do(Close{id})
	}
	for _, id := range ordered(l.dials) {
		delete(l.dials, id)
		l.do(Close{id})
	}
	l.remote = fresh.way.Remote
	l.resumed++
	return true
}

// judge sets the state from what is known.
func (l *Link) judge(now time.Time) {
	state := Offline
	for _, id := range ordered(l.paths) {
		p := l.paths[id]
		p.state = l.believe(now, p)
		if !p.standBy {
			state = min(state, p.state)
		}
	}
	for _, id := range ordered(l.paths) {
		if p := l.paths[id]; state != Live && p.standBy && p.state == Live {
			p.standBy, p.since = false, now
			l.resumed++
			l.do(Activate{id})
			state = Live
		}
	}
	if state == Offline && l.state == Connecting {
		state = Connecting
	}
	inDoubt := func(s State) bool { return s > Live }
	if inDoubt(state) != inDoubt(l.state) || l.since.IsZero() {
		l.since = now
	}
	l.state = state
	switch {
	case state == Live:
		l.seeking, l.round = time.Time{}, nil
	case l.seeking.IsZero():
		l.seeking, l.rounds, l.attempts = now, 0, 0
		l.hurry(now)
	}
}
