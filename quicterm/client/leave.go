package client

import (
	"context"
	"time"

	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Leave makes Run return ErrLeft. The session continues on the server.
func (s *Session) Leave() { s.end(ErrLeft) }

// Part is as Leave, but Run returns when the server has been told, which may not hear of it, and before it has answered.
// Then this process may end. What is left of the session ends within a second.
func (s *Session) Part() { s.end(errParted) }

// end makes Run return. The first cause counts; nil is the program's end.
func (s *Session) end(cause error) {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.endLocked(cause)
}

func (s *Session) endLocked(cause error) {
	if s.over {
		return
	}
	s.over, s.cause = true, cause
	s.gate.Changed()
}

func (s *Session) endIfDamagedLocked() {
	if s.endpoint.Damaged() {
		s.endLocked(ErrDamaged)
	}
}

// sayGoodbye waits until the server has closed the connection: it knows that this client has the end, or leaves.
func (s *Session) sayGoodbye() {
	s.gate.Lock()
	defer s.gate.Unlock()
	lost := func() bool { return s.link.State > Live }
	closed := func() bool { return s.carried && s.driver.Carriers() == 0 }
	switch {
	case s.cause == nil:
		s.waitBrieflyLocked(goodbyeTimeout, closed) // also if the link is suspect: the program's end came over it just now
		s.waitBrieflyLocked(endTimeout-goodbyeTimeout, func() bool { return closed() || lost() })
	case s.cause == ErrLeft, s.cause == errParted:
		given := func() bool { return s.endpoint.Acked() == s.ring.Next() || s.link.State == Offline }
		s.waitBrieflyLocked(suspectTime, given) // also if the link is suspect: this process may not have run
		s.waitBrieflyLocked(goodbyeTimeout-suspectTime, func() bool { return given() || lost() })
		if s.cause == ErrLeft {
			s.endpoint.Notify(wire.NoticeLeaving, "")
		}
		s.driver.Wake()
		s.waitBrieflyLocked(goodbyeTimeout, func() bool { return closed() || lost() })
	}
}

// part tells the server that this client leaves. It reports whether that has left this machine: over ssh it does not
// know.
func (s *Session) part() bool {
	s.gate.Lock()
	defer s.gate.Unlock()
	before, ok := s.driver.Sent()
	s.endpoint.NotifyLast(wire.NoticeLeaving, "")
	s.driver.Wake()
	sent := before
	for until := time.Now().Add(suspectTime); ok && sent < before+session.LastNotice && time.Now().Before(until); {
		s.gate.Unlock()
		time.Sleep(sentPoll)
		s.gate.Lock()
		sent, ok = s.driver.Sent()
	}
	return ok && sent >= before+session.LastNotice
}

// waitBrieflyLocked waits for something that the server does, for at most a time.
func (s *Session) waitBrieflyLocked(timeout time.Duration, done func() bool) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_ = s.waitLocked(ctx, done) // a server that does not answer is no reason to stay
}
