package quicterm

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// goneAfter is how long a server may say that it does not know the session
// before it is believed to be gone: a holder whose socket was removed makes it
// again within a minute.
const goneAfter = 130 * time.Second

// resume says, first on a new carrier, which session it is for.
func (s *Session) resume(quic *carrier.QUIC) error {
	r := &wire.Resume{UID: s.attached.UID, ID: s.attached.ID, Instance: s.instance}
	s.mu.Lock()
	s.resumes++
	r.N = s.resumes
	s.mu.Unlock()
	r.Proof = auth.Proof(s.attached.Secret, r.Statement())
	if err := wire.Send(quic, r); err != nil {
		quic.Close()
		return err
	}
	return nil
}

// A resuming is a carrier on which the server's answer to a resume comes before
// the frames.
type resuming struct {
	*carrier.QUIC
	answered atomic.Bool
}

// A refusedError means that the server does not know the session, or not that it
// is ours.
type refusedError struct{ boot string }

func (e *refusedError) Error() string { return "resume denied" }

func (r *resuming) Read(b []byte) (int, error) {
	if !r.answered.Load() {
		m, err := wire.Read(r.QUIC, wire.MaxMessage)
		if err != nil {
			return 0, err
		}
		if err := resumeAnswer(m); err != nil {
			return 0, err
		}
		r.answered.Store(true)
	}
	return r.QUIC.Read(b)
}

func resumeAnswer(m wire.Message) error {
	switch m.Type {
	case wire.TypeDenied:
		var denied wire.Denied
		if err := m.Decode(&denied); err != nil {
			return err
		}
		return &refusedError{denied.Boot}
	case wire.TypeError:
		var e wire.Error
		if err := m.Decode(&e); err != nil {
			return err
		}
		if e.Code == wire.CodeDisplaced {
			return &DisplacedError{By: e.Text}
		}
		return &ServerError{e.Code, e.Text}
	}
	return m.Decode(&wire.Resumed{})
}

// An origin is where an answer comes from: a name may stand for several machines
// that share a key, of which one has the session.
type origin int

const (
	ours    origin = iota // where the session was reached last
	unknown               // elsewhere: the name does not stand for our address now
	another               // elsewhere: the name stands for our address too
)

// checkEnd takes note that a carrier ended, and of what that says of the session.
func (s *Session) checkEnd(err error, from origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
	var displaced *DisplacedError
	if errors.As(err, &displaced) {
		s.endLocked(displaced)
	}
	var transport *quic.TransportError
	if errors.Is(err, quic.Err0RTTRejected) || errors.As(err, &transport) && transport.Remote && transport.ErrorCode.IsCryptoError() {
		s.client.forgetTicket()
	}
	var refused *refusedError
	if !errors.As(err, &refused) || from == another {
		return
	}
	if s.refused.IsZero() {
		s.refused = time.Now()
	}
	switch {
	case refused.boot != s.attached.Boot && from == ours:
		s.endLocked(fmt.Errorf("%w: the server was started anew", ErrGone))
	case time.Since(s.refused) > goneAfter:
		s.endLocked(fmt.Errorf("%w: the server does not know it any more", ErrGone))
	}
}
