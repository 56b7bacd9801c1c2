package session

import "time"

const (
	// limitedFor is how long frames must have waited to be sent, before that counts as a backlog that lasts: longer than
	// a screen of a program takes on most paths.
	limitedFor = 100 * time.Millisecond

	// limitedGap is the longest time between two moments at which it did.
	limitedGap = 300 * time.Millisecond

	// limitedInterval is how often the peer is told so, and peerLimitedFor how long that holds.
	limitedInterval = 500 * time.Millisecond
	peerLimitedFor  = 3 * limitedInterval
)

// limited records since when the congestion window of the carrier that carries the whole log
// limits what is sent.
type limited struct {
	since, last time.Time
	told        time.Time // when the peer was told last
}

// note records that the window limits what is sent now.
func (l *limited) note(now time.Time) {
	if now.Sub(l.last) > limitedGap {
		l.since = now
	}
	l.last = now
}

// long reports whether it has been so for limitedFor.
func (l *limited) long() bool { return l.last.Sub(l.since) >= limitedFor }

// Limited reports whether more carriers would help this end to send.
func (e *Endpoint) Limited(now time.Time) bool {
	return e.limited.long() && now.Sub(e.limited.last) <= limitedGap
}

// PeerLimited reports whether the peer has said the same of itself.
func (e *Endpoint) PeerLimited(now time.Time) bool {
	return !e.peerLimitedAt.IsZero() && now.Sub(e.peerLimitedAt) < peerLimitedFor
}

// noteLimited records that frames wait now, and tells the peer of a backlog that lasts.
func (e *Endpoint) noteLimited(now time.Time) {
	e.limited.note(now)
	if c := e.whole(); c != nil && e.config.TellLimited && e.Limited(now) && now.Sub(e.limited.told) >= limitedInterval {
		e.limited.told = now
		c.scheduleAck(now)
	}
}
