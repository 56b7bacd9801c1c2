package migrate

import (
	"slices"
	"time"
)

const (
	// BulkInterval is how often Bulk is reported while a backlog lasts.
	BulkInterval = noticeable

	// maxBulk is how many bulk carriers there are at most: four connections of TCP with cubic fill a quarter of
	// 100 Mbit/s at a round trip of 50 ms and a loss of 0.1 %, BBR needs one.
	maxBulk = 4

	// The number of bulk carriers follows the queue of the path, once in pingInterval, in which it shows what the path
	// carries. With less than noQueue of the shortest round trip in it there are twice as many as before, with longQueue
	// or more half as many. queueSlack is added to both, above the jitter of a busy machine.
	noQueue    = 0.05
	longQueue  = 0.25
	queueSlack = 3 * time.Millisecond

	// nearRTT is the round trip from which on more than one bulk carrier may be needed. On shorter ones TCP makes up for
	// a loss soon.
	nearRTT = grace / 5
)

// A bulk is what a backlog needs: carriers of TCP for bulk data, beside those of paths and with no path of their own.
type bulk struct {
	limited  time.Time // when the sender was limited last
	wanted   int       // carriers
	changed  time.Time // when that was changed last
	held     backoff   // until when there are to be no more, after there were too many
	carriers map[ID]*bulkCarrier
	failed   backoff
}

// A bulkCarrier is a carrier beside that of a path, or the dial that is to bring it.
type bulkCarrier struct {
	path    ID
	heardAt time.Time // or dialed
}

// handleBulk decides how many bulk carriers there are to be.
func (m *Manager) handleBulk(now time.Time, limited bool) {
	b, inUse := &m.bulk, m.bestPath(now)
	if !limited {
		return
	}
	if b.wanted == 0 {
		b.wanted, b.changed = 1, now
	}
	b.limited = now
	if inUse == nil {
		return
	}
	queue, shortest := float64(inUse.rtt-inUse.minRTT-queueSlack), float64(inUse.minRTT)
	settled := now.Sub(b.changed) >= max(pingInterval, 4*inUse.rtt)
	switch {
	case queue >= longQueue*shortest:
		if b.wanted > 1 && settled {
			b.held.again(now, ActiveFor, ActiveFor) // each try to have more makes a key wait
			b.wanted, b.changed = b.wanted/2, now
		}
		b.held.next = now.Add(b.held.interval)
	case b.wanted < maxBulk && queue < noQueue*shortest && inUse.minRTT >= nearRTT && settled && !now.Before(b.held.next):
		b.wanted, b.changed = 2*b.wanted, now
	}
}

// besideBulk returns how many bulk carriers there are to be beside each path: that in use and, with Aggregate, the
// other.
func (m *Manager) besideBulk(now time.Time) map[ID]int {
	beside := make(map[ID]int)
	if m.state != Live || m.cfg.Paths == Redundant {
		return beside
	}
	inUse := m.bestPath(now)
	for id, p := range m.paths {
		second := m.cfg.Paths == Aggregate && m.trusted(now, p)
		if (p == inUse || second) && p.candidate.Transport == QUIC && slices.Contains(m.candidates, p.candidate.overTCP()) {
			beside[id] = m.bulk.wanted
		}
	}
	return beside
}

// tendBulk dials the bulk carriers that are wanted, and closes those that are not, whose path is not used, or that are
// silent for too long: an end that only receives does not notice otherwise that one has died.
func (m *Manager) tendBulk(now time.Time) {
	b := &m.bulk
	switch idle := now.Sub(b.limited); {
	case idle >= ActiveFor:
		*b = bulk{limited: b.limited, carriers: b.carriers}
	case idle >= holdDown: // a second backlog often follows sooner
		b.wanted = 0
	}
	beside := m.besideBulk(now)
	for _, id := range ordered(b.carriers) {
		c := b.carriers[id]
		silent := now.Sub(c.heardAt) >= limits[TCP].timeout
		if silent {
			b.failed.again(now, pingInterval, ActiveFor)
		}
		if beside[c.path]--; silent || beside[c.path] < 0 {
			delete(b.carriers, id)
			m.do(Close{id})
		}
	}
	for _, path := range ordered(beside) {
		for n := beside[path]; n > 0 && !now.Before(b.failed.next); n-- {
			m.lastID++
			b.carriers[m.lastID] = &bulkCarrier{path: path, heardAt: now}
			m.do(Dial{ID: m.lastID, Candidate: m.paths[path].candidate.overTCP(), Bulk: true})
		}
	}
}

// bulkEnded removes a bulk carrier that has ended by itself. The next one waits.
func (m *Manager) bulkEnded(now time.Time, id ID) {
	if m.bulk.carriers[id] != nil {
		delete(m.bulk.carriers, id)
		m.bulk.failed.again(now, pingInterval, ActiveFor)
	}
}

// scheduleBulk schedules when tendBulk closes carriers. It dials when Bulk is reported.
func (m *Manager) scheduleBulk(now time.Time, at func(time.Time, func())) {
	at(now, func() { m.tendBulk(now) })
	for _, c := range m.bulk.carriers {
		at(m.bulk.limited.Add(holdDown), func() {})
		at(c.heardAt.Add(limits[TCP].timeout), func() {})
	}
}

// overTCP returns the candidate of TCP with the same address, over the same interface.
func (c Candidate) overTCP() Candidate {
	c.Transport = TCP
	return c
}
