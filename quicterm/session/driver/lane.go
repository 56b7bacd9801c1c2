package driver

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/session"
)

// A lane makes the goroutine that sends on one lane of a carrier sleep while there is
// nothing to send. The driver's mutex guards it, except the channels.
type lane struct {
	id     session.CarrierID
	which  session.Lane
	wake   chan struct{} // holds a token when the lane was woken
	timer  *time.Timer   // fires at sendAt
	asleep bool
	sendAt time.Time // when a sleeping lane has something to send, or zero
}

func newLane(id session.CarrierID, which session.Lane) lane {
	timer := time.NewTimer(idleStream)
	timer.Stop()
	return lane{id: id, which: which, wake: make(chan struct{}, 1), timer: timer}
}

// Wake wakes the lanes that have something to send, and sets the timers of those that
// will have later. The mutex must be held.
func (d *Driver) Wake() {
	now := time.Now()
	for _, r := range d.running {
		d.schedule(now, &r.stream)
		d.schedule(now, &r.datagrams)
	}
}

// sleep notes that a lane has nothing to send. Its goroutine then waits for its wake channel and its timer, without
// the mutex. The time must be that of the call of the endpoint that returned nothing.
func (d *Driver) sleep(now time.Time, l *lane) {
	l.asleep, l.sendAt = true, time.Time{}
	d.schedule(now, l)
}

// schedule wakes a sleeping lane if it has something to send, or sets its timer.
func (d *Driver) schedule(now time.Time, l *lane) {
	if !l.asleep {
		return // it asks the endpoint before it sleeps
	}
	at := d.endpoint.SendTime(now, l.id, l.which)
	switch {
	case at.Equal(l.sendAt):
		return
	case at.IsZero():
		l.timer.Stop()
	case at.After(now):
		l.timer.Reset(at.Sub(now))
	default:
		l.rouse()
	}
	l.sendAt = at
}

// rouse wakes a lane if it sleeps.
func (l *lane) rouse() {
	if l.asleep {
		l.asleep = false
		select {
		case l.wake <- struct{}{}:
		default: // its timer woke it, and it has not seen the last token
		}
	}
}

// awake notes that a lane's goroutine runs again. The mutex must be held.
func (d *Driver) awake(l *lane) {
	l.asleep = false
	l.timer.Stop()
	select {
	case <-l.wake:
	default:
	}
	d.wakeUps++
}
