package migrate

import (
	"maps"
	"slices"
	"time"
)

const (
	// minSuspicion is how long typed input may go unacknowledged at least
	// before the path is suspected: a person notices about then.
	minSuspicion = 250 * time.Millisecond

	// suspicionSlack is what is added to two round trips for the same.
	suspicionSlack = 50 * time.Millisecond

	// secondDial is when a second attempt is made beside a first: its packets
	// are not lost together with those of the first.
	secondDial = 250 * time.Millisecond

	// eagerDial is the time between attempts while typed input waits, and
	// eagerFor how long that goes on.
	eagerDial = 100 * time.Millisecond
	eagerFor  = time.Minute

	// slowDial is the time between attempts when there has been no contact for
	// slowAfter: nobody waits any more, and a battery may.
	slowDial  = 10 * time.Second
	slowAfter = 15 * time.Minute

	// MaxDials is how many attempts are under way at once.
	MaxDials = 8

	// dialPatience is how long an attempt may take before it makes room for
	// another: some round trips on the slowest paths.
	dialPatience = 3 * time.Second

	// activeFor is how long after traffic a path counts as in use.
	activeFor = time.Minute

	// pingAgain is the time between pings that were not answered.
	pingAgain = time.Second
)

// An ID names a carrier or an attempt to get one.
type ID int

// Config has what a person can set.
type Config struct {
	// KeepaliveInterval and KeepaliveIdle are the times between pings with
	// and without traffic within the last minute.
	KeepaliveInterval, KeepaliveIdle time.Duration
	// StallLimit is how long a server may be silent before it is suspected
	// although nothing was typed.
	StallLimit time.Duration
	// Backoff are the waits between attempts to reach a server that does not
	// answer. The last is repeated.
	Backoff []time.Duration
}

// A State is what is believed of the link.
type State int

// The states.
const (
	// Connecting: there is no carrier yet.
	Connecting State = iota
	// Live: the server was heard and owes nothing.
	Live
	// Suspect: the server should have been heard. Others are tried.
	Suspect
	// Offline: nothing works. It is tried again.
	Offline
)

func (s State) String() string {
	return [...]string{"connecting", "live", "suspect", "offline"}[s]
}

// An Event is something that happened: Heard, Down, Waiting or Traffic; or nil for
// the passing of time.
type Event any

// Events.
type (
	// Heard: a carrier has brought something from the server. The first time,
	// it is how an attempt has become a carrier. The carrier that the session
	// began on needs no attempt.
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

// An Action is something to do: Dial, Close or Ping.
type Action any

// Actions.
type (
	// Dial starts an attempt to get a carrier, under a new ID.
	Dial struct{ ID ID }
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

	carriers map[ID]*path
	dials    map[ID]time.Time // attempts that nothing was heard of, since when
	last     ID

	waiting time.Time // since when the server owes an ack
	traffic time.Time // when there was some last

	seeking  time.Time // since when a carrier has been sought, or zero
	attempts int       // since then
	nextDial time.Time
}

// A path is what is known of a carrier.
type path struct {
	heard time.Time
	rtt   time.Duration
	ping  time.Time // when one was sent last
}

// NewLink returns a link without carriers. It does nothing before its first
// event.
func NewLink(cfg Config) *Link {
	return &Link{cfg: cfg, carriers: make(map[ID]*path), dials: make(map[ID]time.Time)}
}

// State returns what is believed of the link, and since when. A suspicion that
// proves true is offline since it arose.
func (l *Link) State() (State, time.Time) { return l.state, l.since }

// Attempts returns how often the server has been tried since it was last heard.
func (l *Link) Attempts() int { return l.attempts }

// Handle takes an event and returns what is to be done now, in that order.
func (l *Link) Handle(now time.Time, event Event) []Action {
	var actions []Action
	switch e := event.(type) {
	case Heard:
		p := l.carriers[e.ID]
		if p == nil {
			actions = l.settle(e.ID)
			p = new(path)
			l.carriers[e.ID] = p
		}
		p.heard = now
		if e.RTT > 0 {
			p.rtt = e.RTT
		}
	case Down:
		delete(l.carriers, e.ID)
		delete(l.dials, e.ID)
	case Waiting:
		l.waiting = e.Since
	case Traffic:
		l.traffic = now
	}
	l.judge(now)
	return append(actions, l.act(now)...)
}

// settle gives up all older carriers and all attempts for one that was heard for
// the first time.
func (l *Link) settle(id ID) []Action {
	var actions []Action
	for _, other := range slices.Sorted(maps.Keys(l.carriers)) {
		if other < id {
			actions = append(actions, Close{other})
			delete(l.carriers, other)
		}
	}
	delete(l.dials, id)
	for _, other := range slices.Sorted(maps.Keys(l.dials)) {
		actions = append(actions, Close{other})
		delete(l.dials, other)
	}
	return actions
}

// best returns the carrier that was heard last, or nil if there is none.
func (l *Link) best() (ID, *path) {
	var id ID
	var found *path
	for i, p := range l.carriers {
		if found == nil || p.heard.After(found.heard) || p.heard.Equal(found.heard) && i > id {
			id, found = i, p
		}
	}
	return id, found
}

// doubtAt returns when a path is suspected if nothing is heard before.
func (l *Link) doubtAt(p *path) time.Time {
	at := p.heard.Add(l.keepalive(p.heard) + l.cfg.StallLimit)
	if !l.waiting.IsZero() {
		since := l.waiting
		if p.heard.After(since) {
			since = p.heard
		}
		if t := since.Add(max(minSuspicion, 2*p.rtt+suspicionSlack)); t.Before(at) {
			at = t
		}
	}
	return at
}

// judge sets the state from what is known.
func (l *Link) judge(now time.Time) {
	state := Connecting
	switch _, p := l.best(); {
	case p != nil && now.Before(l.doubtAt(p)):
		state = Live
	case p != nil && now.Before(p.heard.Add(l.cfg.StallLimit)):
		state = Suspect
	case l.state != Connecting:
		state = Offline
	}
	if state != l.state && !(l.state == Suspect && state == Offline) || l.since.IsZero() {
		l.since = now
	}
	l.state = state
	switch {
	case state == Live:
		l.seeking = time.Time{}
	case l.seeking.IsZero():
		l.seeking, l.attempts, l.nextDial = now, 0, now
	}
}

// act returns what is due.
func (l *Link) act(now time.Time) []Action {
	if l.state == Live {
		return l.ping(now)
	}
	var actions []Action
	for _, id := range slices.Sorted(maps.Keys(l.dials)) {
		if len(l.dials) >= MaxDials && now.Sub(l.dials[id]) >= dialPatience {
			delete(l.dials, id)
			actions = append(actions, Close{id})
		}
	}
	if l.eager(now) {
		if soon := now.Add(eagerDial); l.nextDial.After(soon) {
			l.nextDial = soon
		}
	}
	if now.Before(l.nextDial) || len(l.dials) >= MaxDials {
		return actions
	}
	l.last++
	l.dials[l.last] = now
	l.nextDial = now.Add(l.pause(now))
	l.attempts++
	return append(actions, Dial{l.last})
}

// eager reports whether somebody waits for what they typed.
func (l *Link) eager(now time.Time) bool {
	return !l.waiting.IsZero() && now.Sub(l.waiting) < eagerFor
}

// pause returns how long to wait before the attempt after the present one.
func (l *Link) pause(now time.Time) time.Duration {
	if l.attempts == 0 {
		return secondDial
	}
	if l.eager(now) {
		return eagerDial
	}
	if now.Sub(l.seeking) > slowAfter {
		return slowDial
	}
	return l.cfg.Backoff[min(l.attempts-1, len(l.cfg.Backoff)-1)]
}

// ping pings the best carrier if that is due.
func (l *Link) ping(now time.Time) []Action {
	id, p := l.best()
	if now.Before(l.pingAt(p)) {
		return nil
	}
	p.ping = now
	return []Action{Ping{id}}
}

func (l *Link) pingAt(p *path) time.Time {
	if p.ping.After(p.heard) {
		return p.ping.Add(max(pingAgain, 2*p.rtt))
	}
	return p.heard.Add(l.keepalive(p.heard))
}

// keepalive returns the time between pings at a time.
func (l *Link) keepalive(now time.Time) time.Duration {
	if now.Sub(l.traffic) < activeFor {
		return l.cfg.KeepaliveInterval
	}
	return l.cfg.KeepaliveIdle
}

// Deadline returns when Handle is to be called at the latest.
func (l *Link) Deadline() time.Time {
	if _, p := l.best(); l.state == Live {
		at := l.pingAt(p)
		if t := l.doubtAt(p); t.Before(at) {
			at = t
		}
		return at
	}
	at := l.nextDial
	if len(l.dials) >= MaxDials {
		var oldest time.Time
		for _, since := range l.dials {
			if oldest.IsZero() || since.Before(oldest) {
				oldest = since
			}
		}
		if t := oldest.Add(dialPatience); t.After(at) {
			at = t
		}
	}
	return at
}
