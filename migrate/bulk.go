package migrate

import "time"

const (
	// BulkInterval is how often Bulk is reported while much is sent.
	BulkInterval = 250 * time.Millisecond

	// stripesIdle is how long stripes are kept that are not needed: a second bulk often follows.
	stripesIdle = 5 * time.Second

	// firstStripe and maxStripe bound the time between dials of stripes after one has failed, which
	// doubles until one is answered.
	firstStripe = time.Second
	maxStripe   = time.Minute

	// With Config.Adapt, the number of carriers follows the queue of the path: with less than
	// noQueue of the shortest round trip in it there are all, with longQueue or more half as many
	// as before. queueSlack is added to both, above the jitter of a busy machine.
	noQueue    = 0.1
	longQueue  = 0.25
	queueSlack = 3 * time.Millisecond

	// manyLost is the part of packets above which there are no more carriers either: the path may
	// have no queue that could tell.
	manyLost = 0.02

	// growAfter is the least time from a change or the beginning to more carriers, shrinkAfter to
	// less: some round trips in which it shows what the path carries.
	growAfter   = 400 * time.Millisecond
	shrinkAfter = 500 * time.Millisecond

	// firstHold and maxHold bound how long the path must be without a queue before there are more
	// carriers again, which doubles each time that they were too many.
	firstHold = time.Second
	maxHold   = time.Minute
)

// A bulk is what much data needs: stripes, carriers beside the one in use, on the same path.
// They are no paths of their own: they end with the path.
type bulk struct {
	limited time.Time // when the sender was limited last
	wanted  int       // stripes
	changed time.Time // when that was changed last
	held    backoff   // until when there are to be no more
	stripes map[ID]*stripe
	failed  backoff
}

// A stripe is a carrier beside the one in use, or the dial that is to bring it.
type stripe struct {
	candidate Candidate
	since     time.Time
	heard     bool
}

// handleBulk decides how many stripes there are to be.
func (m *Manager) handleBulk(now time.Time, e Bulk) {
	b := &m.bulk
	if !e.Limited {
		return
	}
	if now.Sub(b.limited) >= stripesIdle {
		b.changed = now // it may only begin
	}
	b.limited = now
	most := m.cfg.Carriers - 1
	if !m.cfg.Adapt {
		b.wanted = most
		return
	}
	inUse := m.bestPath(now)
	if inUse == nil {
		return
	}
	queue := inUse.rtt - inUse.minRTT - queueSlack
	since := now.Sub(b.changed)
	switch {
	case queue >= time.Duration(longQueue*float64(inUse.minRTT)) || e.Lost > manyLost:
		if b.wanted == most && since >= shrinkAfter {
			b.held.again(now, firstHold, maxHold)
		}
		if b.wanted > 0 && since >= shrinkAfter {
			b.wanted, b.changed = b.wanted/2, now
		}
		b.held.next = now.Add(b.held.interval)
	case queue < time.Duration(noQueue*float64(inUse.minRTT)):
		if b.wanted < most && since >= max(growAfter, 4*inUse.rtt) && !now.Before(b.held.next) {
			b.wanted, b.changed = most, now
		}
	}
}

// tendStripes dials the stripes that are wanted, and closes those that are not, that are on
// another path, or whose dials take too long.
func (m *Manager) tendStripes(now time.Time) {
	b := &m.bulk
	inUse := m.bestPath(now)
	usable := m.state == Live && inUse != nil && inUse.candidate.Transport == QUIC && m.cfg.Paths != Redundant
	if now.Sub(b.limited) >= stripesIdle {
		b.wanted, b.held = 0, backoff{}
	}
	for i, id := range ordered(b.stripes) {
		s := b.stripes[id]
		late := !s.heard && now.Sub(s.since) >= limits[QUIC].timeout
		if late {
			b.failed.again(now, firstStripe, maxStripe)
		}
		if !usable || late || i >= b.wanted || s.candidate != inUse.candidate {
			delete(b.stripes, id)
			m.do(Close{id})
		}
	}
	for usable && len(b.stripes) < b.wanted && !now.Before(b.failed.next) {
		m.lastID++
		b.stripes[m.lastID] = &stripe{candidate: inUse.candidate, since: now}
		m.do(Dial{ID: m.lastID, Candidate: inUse.candidate, Stripe: true})
	}
}

// stripeEnded removes a stripe that has ended by itself. The next one waits.
func (m *Manager) stripeEnded(now time.Time, id ID) {
	if m.bulk.stripes[id] != nil {
		delete(m.bulk.stripes, id)
		m.bulk.failed.again(now, firstStripe, maxStripe)
	}
}

// stripesDeadline returns when tendStripes closes a stripe, or zero.
func (m *Manager) stripesDeadline() (at time.Time) {
	for _, s := range m.bulk.stripes {
		end := m.bulk.limited.Add(stripesIdle)
		if late := s.since.Add(limits[QUIC].timeout); !s.heard && late.Before(end) {
			end = late
		}
		if at.IsZero() || end.Before(at) {
			at = end
		}
	}
	return at
}
