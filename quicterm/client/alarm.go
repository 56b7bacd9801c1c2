package client

import "time"

// isLate reports whether a timer that was due, unless that is zero, has fired too late.
func isLate(now, due time.Time) bool { return !due.IsZero() && now.Sub(due) > maxLate }

// An alarm decides which frames wake the roamer. While the link is steady, that is those after
// which something is different for the roamer: input that stays unacknowledged for longer than
// it may, and traffic after a silence. Otherwise every frame wakes it.
//
//	              ┌─ not steady ──────────────────────────▶ wake
//	frames sent ──┤            ┌─ unacked: start timer ─ no ack in time ─▶ wake
//	or received   └─ steady ───┼─ all acked: stop timer
//	                           └─ traffic after silence ──▶ wake
//
// The session's gate guards it.
type alarm struct {
	roamer chan struct{} // wakes it

	// As the roamer has set it:
	steady     bool          // see [migrate.Manager.Steady]
	ackTimeout time.Duration // how long an ack may take
	reported   time.Time     // when traffic was reported last

	traffic time.Time   // the last traffic that is not reported, or zero
	unacked bool        // input waits for an ack, and the timer or the roamer watches that
	overdue *time.Timer // wakes the roamer; nil before the first use
	due     time.Time   // when that fires, or zero
}

// frames decides about frames that were sent or received, after which input waits for an ack
// since unacked, or not if that is zero.
func (a *alarm) frames(now, unacked time.Time, traffic bool) {
	if traffic {
		a.traffic = now
	}
	switch {
	case !a.steady || traffic && now.Sub(a.reported) > trafficSilence:
		wake(a.roamer)
	case unacked.IsZero():
		a.stop()
	case !a.unacked:
		a.unacked = true
		d := max(unacked.Add(a.ackTimeout).Sub(now), 0)
		a.due = now.Add(d)
		if a.overdue == nil {
			a.overdue = time.AfterFunc(d, func() { wake(a.roamer) })
		} else {
			a.overdue.Reset(d)
		}
	}
}

// look returns the traffic since the last call, or zero. From then on the roamer watches the
// input that waits for an ack, if any does.
func (a *alarm) look(now time.Time, unacked bool) (traffic time.Time) {
	traffic = a.traffic
	if !traffic.IsZero() {
		a.traffic, a.reported = time.Time{}, now
	}
	a.stop()
	a.unacked = unacked
	return traffic
}

// set takes what the roamer knows of the link.
func (a *alarm) set(steady bool, ackTimeout time.Duration) {
	if a.steady && !steady {
		wake(a.roamer) // frames may have come since it looked
	}
	a.steady, a.ackTimeout = steady, ackTimeout
}

// late reports whether the roamer looks much later than the timer should have woken it.
func (a *alarm) late(now time.Time) bool { return isLate(now, a.due) }

// stop stops the timer.
func (a *alarm) stop() {
	a.unacked, a.due = false, time.Time{}
	if a.overdue != nil {
		a.overdue.Stop()
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
