package migrate

import "time"

const (
	// secondRound is when everything is tried again beside a first round: its
	// packets are not lost together with those of the first.
	secondRound = 250 * time.Millisecond

	// eagerRound is the time between rounds while typed input waits, and
	// eagerFor how long that goes on.
	eagerRound = 100 * time.Millisecond
	eagerFor   = time.Minute

	// typedRound is the time between rounds when something is typed after that.
	typedRound = time.Second

	// slowRound is the time between rounds when there has been no contact for
	// slowAfter: nobody waits any more, and a battery may.
	slowRound = 10 * time.Second
	slowAfter = 15 * time.Minute

	// nextWay is how long a way has before the next best is tried as well.
	// Long enough that the better one wins if both work, short enough that
	// nobody notices.
	nextWay = 50 * time.Millisecond

	// MaxDials is how many attempts are under way at once.
	MaxDials = 16

	// dialPatience is how long an attempt may take before it makes room for
	// another: some round trips on the slowest paths.
	dialPatience = 3 * time.Second

	// calm is how long a path is used before it is left for a better one that
	// works as well.
	calm = 5 * time.Second

	// firstSpare and maxSpare bound the time between attempts to get a second
	// path, which doubles each time.
	firstSpare = 2 * time.Second
	maxSpare   = time.Minute
)

// hurry has the next round begin at once, or soon after one that has just been.
func (l *Link) hurry(now time.Time) {
	l.round = nil
	l.nextRound = now
	if soonest := l.lastRound.Add(eagerRound); soonest.After(now) {
		l.nextRound = soonest
	}
}

// insist has the next round begin soon: somebody is there who types although they
// have been told that nothing works.
func (l *Link) insist() {
	if soon := l.lastRound.Add(typedRound); l.state == Offline && l.nextRound.After(soon) {
		l.nextRound = soon
	}
}

// seek tries all ways to the server.
func (l *Link) seek(now time.Time) {
	if soon := now.Add(eagerRound); l.eager(now) && l.nextRound.After(soon) {
		l.nextRound = soon
	}
	for {
		if len(l.round) == 0 {
			if !l.due(now, l.nextRound) {
				return
			}
			l.begin(now)
			continue
		}
		if !l.due(now, l.nextDial) {
			return
		}
		l.nextDial = now.Add(nextWay)
		l.dial(now, l.round[0], false)
		l.round = l.round[1:]
	}
}

// begin begins a round.
func (l *Link) begin(now time.Time) {
	l.round = l.candidates(now)
	if l.rounds == 0 {
		l.round = l.withoutAvoided(l.round)
	}
	if len(l.round) > 0 {
		l.attempts++
		l.lastRound = now
	}
	l.nextDial = now
	l.nextRound = now.Add(l.pause(now))
	l.rounds++
}

// makeRoom gives an attempt up where there are too many. The oldest is left to
// itself for a while, for a path that is slower than the others live.
func (l *Link) makeRoom(now time.Time) {
	if len(l.dials) < MaxDials {
		return
	}
	ids := ordered(l.dials)
	id := ids[1]
	if now.Sub(l.dials[ids[0]].since) >= dialPatience {
		id = ids[0]
	}
	delete(l.dials, id)
	l.do(Close{id})
}

func (l *Link) dial(now time.Time, way Way, spare bool) {
	l.makeRoom(now)
	l.last++
	l.dials[l.last] = &dial{way: way, since: now, spare: spare}
	l.do(Dial{l.last, way, spare && l.cfg.Paths == Standby})
}

// failed takes note that an attempt has led to nothing.
func (l *Link) failed(now time.Time, id ID) {
	d := l.dials[id]
	if d == nil {
		return
	}
	delete(l.dials, id)
	for _, p := range l.paths {
		if p.way.Interface == d.way.Interface && l.trusted(now, p) {
			return
		}
	}
	if l.state == Live && !d.spare {
		l.blame(now, d.way.Interface)
	}
}

// expire gives up attempts that take too long. While somebody waits for what they
// typed, those end when there is no room for others.
func (l *Link) expire(now time.Time) {
	for _, id := range ordered(l.dials) {
		d := l.dials[id]
		if (l.state == Live || d.spare || !l.eager(now)) && l.due(now, d.since.Add(dialPatience)) {
			l.failed(now, id)
			l.do(Close{id})
		}
	}
}

// eager reports whether somebody waits for what they typed.
func (l *Link) eager(now time.Time) bool {
	return !l.waiting.IsZero() && now.Sub(l.waiting) < eagerFor
}

// pause returns how long to wait before the round after the present one.
func (l *Link) pause(now time.Time) time.Duration {
	if l.rounds == 0 {
		return secondRound
	}
	if l.eager(now) {
		return eagerRound
	}
	if now.Sub(l.seeking) > slowAfter {
		return slowRound
	}
	return l.cfg.Backoff[min(l.rounds-1, len(l.cfg.Backoff)-1)]
}

// improve leaves the path for a better one, when there has been calm.
func (l *Link) improve(now time.Time) {
	if l.cfg.Paths == Redundant {
		return
	}
	for _, d := range l.dials {
		if !d.spare {
			return
		}
	}
	ways := l.candidates(now)
	if len(ways) == 0 {
		return
	}
	for _, p := range l.paths {
		if !p.standBy && (ways[0].Interface == p.way.Interface || !l.better(now, ways[0], p.way) || !l.due(now, p.since.Add(calm))) {
			return
		}
	}
	l.dial(now, ways[0], false)
	l.due(now, now.Add(dialPatience))
}

// double gets a second path over another interface, if there is to be one.
func (l *Link) double(now time.Time) {
	if l.cfg.Paths == Failover {
		return
	}
	taken := make(map[string]bool)
	for _, p := range l.paths {
		taken[p.way.Interface] = true
	}
	for _, d := range l.dials {
		if d.spare {
			return
		}
	}
	if len(taken) > 1 {
		return
	}
	for _, w := range l.candidates(now) {
		if taken[w.Interface] || l.avoided(w) || !l.due(now, l.nextSpare) {
			continue
		}
		l.spareAfter = min(max(2*l.spareAfter, firstSpare), maxSpare)
		l.nextSpare = now.Add(l.spareAfter)
		l.dial(now, w, true)
		l.due(now, now.Add(dialPatience))
		return
	}
}
