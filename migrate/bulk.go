package migrate

import "time"

const (
	// BulkInterval is how often Bulk is reported while much is sent.
	BulkInterval = 250 * time.Millisecond

	// stripesIdle is how long stripes are kept that are not needed: a second bulk often follows.
	stripesIdle = 5 * time.Second

	// firstStripe and maxStripe bound the time between dials of stripes after one has failed.
	firstStripe = time.Second
	maxStripe   = time.Minute
)

// A bulk is what much data needs: stripes, carriers beside the one in use, on the same path.
// They are no paths of their own: they end with the path.
type bulk struct {
	limited time.Time // when the sender was limited last
	stripes map[ID]*stripe
	failed  backoff
}

// A stripe is a carrier beside the one in use, or the dial that is to bring it.
type stripe struct {
	candidate Candidate
	since     time.Time
	heard     bool
}

// note records whether the sender is limited.
func (b *bulk) note(now time.Time, limited bool) {
	if limited {
		b.limited = now
	}
}

// wanted returns how many stripes there are to be.
func (m *Manager) wanted(now time.Time) int {
	if m.bulk.limited.IsZero() || now.Sub(m.bulk.limited) >= stripesIdle {
		return 0
	}
	return m.cfg.Carriers - 1
}

// tendStripes dials the stripes that are wanted, and closes those that are not, that are on
// another path, or whose dials take too long.
func (m *Manager) tendStripes(now time.Time) {
	b := &m.bulk
	inUse := m.bestPath(now)
	usable := m.state == Live && inUse != nil && inUse.candidate.Transport == QUIC && m.cfg.Paths != Redundant
	wanted := m.wanted(now)
	for i, id := range ordered(b.stripes) {
		s := b.stripes[id]
		late := !s.heard && now.Sub(s.since) >= limits[QUIC].timeout
		if late {
			b.failed.again(now, firstStripe, maxStripe)
		}
		if !usable || late || i >= wanted || s.candidate != inUse.candidate {
			delete(b.stripes, id)
			m.do(Close{id})
		}
	}
	for usable && len(b.stripes) < wanted && !now.Before(b.failed.next) {
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
