package session

import "time"

// limited records since when the congestion window of the carrier that carries the whole log limits what is sent.
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
