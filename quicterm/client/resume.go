package client

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/sealed"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// resume asks the server, first on a new carrier, to continue the session. The answer comes
// before the frames, and is read with the first of them. On an error, the carrier is closed.
func (s *Session) resume(c carrier.Carrier) (*resumedCarrier, error) {
	r := &wire.Resume{UID: s.attached.UID, ID: s.attached.ID, Instance: s.instance, Boot: s.attached.Boot}
	s.gate.Lock()
	s.proofs++
	r.N = s.proofs
	s.gate.Unlock()
	statement := r.Statement()
	r.Proof = auth.Proof(s.attached.Secret, statement)
	if err := wire.Send(c, r); err != nil {
		c.Close()
		return nil, err
	}
	resumed := new(resumedCarrier)
	fromClient, fromHolder := auth.SealKeys(s.attached.Secret, statement)
	resumed.Conn = sealed.New(&answeredCarrier{c, &resumed.accepted}, fromClient, fromHolder)
	return resumed, nil
}

// A resumedCarrier is a carrier on which the session is resumed.
type resumedCarrier struct {
	*sealed.Conn
	accepted atomic.Bool // the server has accepted the resume
}

// An answeredCarrier is a carrier whose stream begins with the answer to a Resume.
type answeredCarrier struct {
	carrier.Carrier
	accepted *atomic.Bool
}

func (c *answeredCarrier) Read(b []byte) (int, error) {
	if !c.accepted.Load() {
		m, err := wire.Read(c.Carrier, wire.MaxMessage)
		if err != nil {
			return 0, err
		}
		if err := checkResumed(m); err != nil {
			return 0, err
		}
		c.accepted.Store(true)
	}
	return c.Carrier.Read(b)
}

// A notFoundError means that the server does not have the session, or that the proof is wrong: it does not say which.
type notFoundError struct {
	gone bool // the server says that the session is
}

func (e *notFoundError) Error() string { return "resume denied" }

// checkResumed returns nil if m accepts a resume, else why the server refused it.
func checkResumed(m wire.Message) error {
	switch m.Type {
	case wire.TypeDenied:
		var denied wire.Denied
		if err := m.Decode(&denied); err != nil {
			return err
		}
		return &notFoundError{denied.Gone}
	case wire.TypeError:
		refusal := new(wire.Error)
		if err := m.Decode(refusal); err != nil {
			return err
		}
		return refusedBy(refusal)
	}
	return m.Decode(&wire.Resumed{})
}

// refusedBy returns what an Error in place of Attached or Resumed means.
func refusedBy(e *wire.Error) error {
	switch e.Code {
	case wire.CodeDisplaced:
		return &DisplacedError{By: e.Text}
	case wire.CodeWithdrawn:
		return &WithdrawnError{Reason: e.Text}
	}
	return e
}

// A responder tells which machine an answer is from: a name may stand for several machines
// that share a host key, and only one of them has the session.
type responder int

const (
	sessionHost  responder = iota // the one at which the session was last reached
	possibleHost                  // another one, and the name no longer stands for the first
	otherHost                     // another one, and the name still stands for the first too
)

// responderAt tells which machine is at an address of the server, given the one at which the session was last reached
// and those that the name stands for. An address that is not valid stands for the machine at the end of the tunnel.
func responderAt(addr, session netip.AddrPort, named []netip.AddrPort) responder {
	switch {
	case addr == session:
		return sessionHost
	case !addr.IsValid():
		return possibleHost
	case slices.Contains(named, session):
		return otherHost
	}
	return possibleHost
}

// carrierEnded decides what the end of a carrier says of the session. It reports whether the
// session is over, so that no other carrier is needed.
func (s *Session) carrierEnded(t migrate.Transport, err error, from responder) (over bool) {
	s.client.dialers[t].failed(err)
	s.gate.Lock()
	defer s.gate.Unlock()
	s.gate.Changed()
	s.carrierEndedLocked(err, from)
	return s.over
}

func (s *Session) carrierEndedLocked(err error, from responder) {
	var displaced *DisplacedError
	if errors.As(err, &displaced) {
		s.endLocked(displaced)
	}
	var withdrawn *WithdrawnError
	if errors.As(err, &withdrawn) {
		s.endLocked(withdrawn)
	}
	var notFound *notFoundError
	if !errors.As(err, &notFound) || from == otherHost {
		return
	}
	now := time.Now()
	if s.deniedSince.IsZero() {
		s.deniedSince = now
	}
	switch {
	case from != sessionHost:
	case !notFound.gone:
		s.saidGoneSince = time.Time{}
	case s.saidGoneSince.IsZero():
		s.saidGoneSince = now
	case now.Sub(s.saidGoneSince) >= confirmedAfter:
		s.endLocked(fmt.Errorf("%w: its holder was killed, or its machine was restarted", ErrGone))
	}
	if now.Sub(s.deniedSince) > goneAfter {
		s.endLocked(fmt.Errorf("%w: the server has it no more: its machine was restarted, or another client ended it",
			ErrGone))
	}
}
