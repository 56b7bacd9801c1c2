package session

import "time"

// SendTime returns when a lane of a carrier has something to send: now or earlier if
// Stream or Datagram would return bytes, and zero if only an event can change that. It
// changes nothing.
func (e *Endpoint) SendTime(now time.Time, id CarrierID, lane Lane) time.Time {
	c := e.carriers[id]
	switch {
	case c == nil:
		return time.Time{}
	case lane == StreamLane:
		return e.streamTime(now, c)
	}
	return e.datagramTime(now, c)
}

// due reports whether a time that is set has come.
func due(now, at time.Time) bool { return !at.IsZero() && !now.Before(at) }

// earlier returns the earlier of two times, of which either may be zero for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
