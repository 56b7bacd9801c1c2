package migrate

import "time"

const (
	// minSuspicion is how long typed input may go unacknowledged at least
	// before the path is suspected: a person notices about then.
	minSuspicion = 250 * time.Millisecond

	// suspicionSlack is what is added to two round trips for the same.
	suspicionSlack = 50 * time.Millisecond

	// activeFor is how long after traffic a path counts as in use.
	activeFor = time.Minute

	// pingAgain is the time between pings that were not answered.
	pingAgain = time.Second

	// kickAgain is the same for a path that may have moved: the server learns
	// of its new address by what is sent from there. There are maxKicks of them.
	kickAgain = 50 * time.Millisecond
	maxKicks  = 20

	// compared is how long one of several paths may be silent while there is
	// traffic, before it is pinged: a dead one should be known before it is
	// needed.
	compared = time.Second

	// deaf is how long a path may be heard without what the server owes, before
	// that is no reason any more to suspect the path: the server is in need, as
	// where the process that keeps the session is stopped.
	deaf = time.Minute

	// giveUp is how long a path may be in doubt beside one that works: some
	// pings, of which one gets through a bad path.
	giveUp = 5 * time.Second
)

// A path is what is known of a carrier.
type path struct {
	way     Way
	since   time.Time // it was first heard, or activated
	heard   time.Time // last
	rtt     time.Duration
	ping    time.Time // when one was sent last
	standBy bool      // it carries nothing
	owed    time.Time // since when there has been traffic and it was not heard
	moved   int       // how often its packets have changed their way

	state   State     // believed
	doubted State     // Moving or Suspect if an event has raised a doubt, or 0
	kicks   int       // sent in this doubt
	dubious time.Time // since when it has been found so beside one that works
}

// doubt has the path prove itself.
func (p *path) doubt(why State) { p.doubted, p.kicks = why, 0 }

// trusted reports whether a path is believed to work. If so, it is looked at
// again when that would end.
func (l *Link) trusted(now time.Time, p *path) bool {
	return p.doubted == 0 && !l.due(now, l.doubtAt(p))
}

// believe returns the state that a path would give the link if it were alone.
func (l *Link) believe(now time.Time, p *path) State {
	switch {
	case l.trusted(now, p):
		return Live
	case l.due(now, p.heard.Add(l.cfg.StallLimit)):
		return Offline
	case p.doubted == Moving:
		return Moving
	}
	return Suspect
}

// doubtAt returns when a path is suspected if nothing is heard before.
func (l *Link) doubtAt(p *path) time.Time {
	at := p.heard.Add(l.keepalive(p.heard) + l.cfg.StallLimit)
	if overdue := l.overdueAt(p); !overdue.IsZero() {
		// What is heard meanwhile shows that the answer may only be late, behind
		// other things. But it may also be that nothing of ours arrives there, and
		// the server says the same again and again.
		patience := l.patience(p)
		since := overdue.Add(-patience)
		if p.heard.After(since) {
			since = p.heard
		}
		if since.After(overdue) {
			since = overdue
		}
		if t := since.Add(patience); t.Before(at) {
			at = t
		}
	}
	return at
}

// overdueAt returns when what was typed has waited on a path for as long as an
// answer may take, or zero if nothing waits or for too long to say anything.
func (l *Link) overdueAt(p *path) time.Time {
	if l.waiting.IsZero() || p.standBy || p.heard.Sub(l.waiting) >= deaf {
		return time.Time{}
	}
	since := l.waiting
	if p.since.After(since) {
		since = p.since
	}
	return since.Add(l.patience(p))
}

// patience returns how long an answer on a path may take.
func (l *Link) patience(p *path) time.Duration {
	return max(minSuspicion, 2*p.rtt+suspicionSlack)
}

// answers reports whether a path is trusted, and owes no answer.
func (l *Link) answers(now time.Time, p *path) bool {
	overdue := l.overdueAt(p)
	return l.trusted(now, p) && (overdue.IsZero() || now.Before(overdue))
}

// keepalive returns the time between pings at a time.
func (l *Link) keepalive(now time.Time) time.Duration {
	if now.Sub(l.traffic) < activeFor {
		return l.cfg.KeepaliveInterval
	}
	return l.cfg.KeepaliveIdle
}

// ping pings the paths for which it is due.
func (l *Link) ping(now time.Time) {
	for _, id := range ordered(l.paths) {
		p := l.paths[id]
		if l.due(now, l.pingAt(now, p)) {
			p.ping = now
			p.kicks++
			l.do(Ping{id})
			l.due(now, l.pingAt(now, p))
		}
	}
}

// pingAt returns when to ping a path.
func (l *Link) pingAt(now time.Time, p *path) time.Time {
	switch again := max(pingAgain, 2*p.rtt); {
	case p.doubted != 0 && p.kicks == 0:
		return now
	case p.doubted != 0 && p.kicks < maxKicks:
		return p.ping.Add(kickAgain)
	case p.ping.After(p.heard):
		return p.ping.Add(again)
	case !p.dubious.IsZero():
		return now
	case len(l.paths) > 1 && !p.standBy && !p.owed.IsZero():
		return p.owed.Add(compared)
	}
	return p.heard.Add(l.keepalive(p.heard))
}

// tidy closes paths that do not prove themselves beside one that works, or that
// another has made superfluous.
func (l *Link) tidy(now time.Time) {
	if len(l.paths) < 2 {
		return
	}
	for _, id := range ordered(l.paths) {
		p := l.paths[id]
		sound := l.trusted(now, p) && !p.ping.After(p.heard)
		if sound && !l.superfluous(now, p) {
			p.dubious = time.Time{}
			continue
		}
		if p.dubious.IsZero() {
			p.dubious = now
		}
		if !l.due(now, p.dubious.Add(giveUp)) {
			continue
		}
		delete(l.paths, id)
		l.do(Close{id})
		if !sound {
			l.blame(now, p.way.Interface)
		}
	}
}

// superfluous reports whether a later path does all that a path does, or one does
// that is not to be avoided as this one is.
func (l *Link) superfluous(now time.Time, p *path) bool {
	for _, other := range l.paths {
		if l.avoided(p.way) && !l.avoided(other.way) && !other.standBy && l.trusted(now, other) {
			return true
		}
		if other.since.After(p.since) && !other.standBy && l.trusted(now, other) &&
			(l.cfg.Paths != Redundant && !p.standBy || other.way.Interface == p.way.Interface) {
			return true
		}
	}
	return false
}

// A Path describes a carrier.
type Path struct {
	ID      ID
	Way     Way
	State   State // that it would give the link if it were alone
	StandBy bool
	Since   time.Time // it was first heard, or activated
	Heard   time.Time // last
	Moved   int       // how often its packets have changed their way
}

// Paths describes the carriers, oldest first.
func (l *Link) Paths() []Path {
	var paths []Path
	for _, id := range ordered(l.paths) {
		p := l.paths[id]
		paths = append(paths, Path{id, p.way, p.state, p.standBy, p.since, p.heard, p.moved})
	}
	return paths
}
