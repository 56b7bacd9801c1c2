package events

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// settleTime is how long a terminal must be still before a program that reads waits: what it asks is printed in one
	// piece or a few.
	settleTime = 50 * time.Millisecond

	// stillTime is how long it must be before long output has ended: many programs that work draw a clock or something
	// that turns, most each second or more often.
	stillTime = 1500 * time.Millisecond

	// silentTime is how long it must be until silence is told.
	silentTime = 10 * time.Second

	// busyTime is how long something must be printed, without being still, before it is told again that the terminal is.
	// What prints now and then, such as a monitor, is not told each time.
	busyTime = 2 * time.Second

	// lookInterval bounds the time between two looks at a program that prints nothing.
	lookInterval = 10 * time.Second
)

// A Stillness finds when a terminal waits for a person: its program reads, and prints nothing. It says when to look
// whether the program reads, which costs something: never while nothing happens and that is known.
type Stillness struct {
	since   time.Time // when output began that is not still
	last    time.Time // when something was printed or entered
	next    time.Time // when to look, or zero
	busy    bool      // something was printed for long since the last input
	settled bool      // nothing is to be found until something happens

	prompt, waits, silent bool // that is to be told
}

// NewStillness returns one of a program that starts now.
func NewStillness(now time.Time) (s Stillness) {
	s.Entered(now)
	return s
}

// Printed is called when something was printed.
func (s *Stillness) Printed(now time.Time) {
	if now.Sub(s.last) >= stillTime {
		s.since = now
	}
	if s.last = now; now.Sub(s.since) >= busyTime {
		s.waits, s.silent, s.busy = true, true, true
	}
	s.settled = false
	s.await(now.Add(settleTime))
}

// Entered is called when a line, or a key that may stop the program, was given to the program.
func (s *Stillness) Entered(now time.Time) {
	s.since, s.last = now, now
	s.prompt, s.waits, s.silent, s.busy, s.settled = true, true, true, false, false
	s.await(now.Add(settleTime))
}

// await sets when to look, if that is not set already: then Due comes earlier, and is late enough.
func (s *Stillness) await(at time.Time) {
	if s.next.IsZero() && (s.prompt || s.waits || s.silent) {
		s.next = at
	}
}

// Next returns when Due is to be called, or zero.
func (s *Stillness) Next() time.Time { return s.next }

// Due reports whether to look now.
func (s *Stillness) Due(now time.Time) bool {
	if s.next.IsZero() || now.Before(s.next) {
		return false
	}
	if at := s.last.Add(settleTime); now.Before(at) {
		s.next = at
		return false
	}
	s.next = time.Time{}
	return true
}

// Look takes what a look has found, in time: whether the program in the foreground reads, and whether that is the
// session's shell at its prompt. It returns the kind of the event that this is, or 0.
func (s *Stillness) Look(now time.Time, reads, atPrompt bool) (kind wire.EventKind) {
	still := now.Sub(s.last)
	switch {
	case reads && atPrompt:
		if s.prompt {
			kind = wire.EventPrompt
		}
		s.prompt, s.waits, s.silent, s.settled = false, false, false, true
	case reads && (!s.busy || still >= stillTime):
		if s.waits {
			kind = wire.EventWaits
		}
		// A key may end the program.
		s.prompt, s.waits, s.silent, s.settled = true, false, false, true
	case still >= silentTime && s.silent:
		kind, s.silent = wire.EventSilent, false
	}
	if s.settled {
		s.next = time.Time{}
		return kind
	}
	after := still + min(still/4, lookInterval)
	if still < stillTime {
		after = min(2*max(still, settleTime), stillTime)
	} else if still < silentTime {
		after = min(after, silentTime)
	}
	s.next = time.Time{}
	s.await(s.last.Add(after))
	return kind
}
