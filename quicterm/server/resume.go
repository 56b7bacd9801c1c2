//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// errNotAccepted is the error of a resume that the holder denies.
var errNotAccepted = fmt.Errorf("%w: the holder does not accept the resume", errDenied)

// errNoSession is the error of a resume without a holder.
var errNoSession = fmt.Errorf("%w: resume of a session that does not exist", errDenied)

// resume makes the connection another carrier of an attachment. Until the holder has accepted the proof, it is sent
// nothing but the Resume, and the client nothing. The client takes Denied for a sign of the session's end, so it is
// sent only if there is no holder or the holder itself refuses. After any other error, and above the rate limit, the
// client gets no answer, and tries again.
func (c *conn) resume(m wire.Message) error {
	var req wire.Resume
	if err := m.Decode(&req); err != nil {
		return err
	}
	s, from := c.server, resumer{req.ID, c.pending.Source}
	c.log = c.log.With("uid", req.UID, "id", req.ID.Short())
	if s.unauthenticated.denied.Empty(time.Now(), from) {
		return fmt.Errorf("resume: %w", errTooOften)
	}
	s.unauthenticated.speaks(time.Now(), c.pending)
	resumed, err := s.resume(c.incoming.Context(),
		&privsep.Resume{Payload: m.Payload, Path: c.path(), Datagrams: c.carrier.Datagrams()})
	if errors.Is(err, errNotAccepted) {
		s.unauthenticated.denied.Allow(time.Now(), from)
		s.unauthenticated.replays.Allow(time.Now(), from.source)
	}
	if errors.Is(err, errDenied) {
		s.unauthenticated.leave(c.pending)
		c.sendLast(&wire.Denied{Gone: resumed.Gone})
		if errors.Is(err, errNoSession) && req.Boot != (wire.BootMark{}) {
			c.over = &attachmentID{req.ID, req.Instance}
		}
	}
	var withdrawn *privsep.Withdrawn
	if errors.As(err, &withdrawn) {
		s.unauthenticated.prove(c.pending)
		c.sendLast(&wire.Error{Code: wire.CodeWithdrawn, Text: withdrawn.Error()})
	}
	if err != nil {
		return err
	}
	s.unauthenticated.prove(c.pending)
	if c.local == nil {
		s.accounts.join(req.UID, c.member)
	}
	c.carrier.SetDeadline(time.Time{})
	answer := wire.Message(resumed.Answer)
	if answer.Type != wire.TypeResumed {
		return c.relay(req.UID, answer, resumed.Carrier) // a refusal, which ends the carrier
	}
	c.login = &resumed.Login
	attached := s.attachments.resume(c, &req, resumed)
	defer s.attachments.remove(attached)
	c.log = attached.log()
	defer c.recheck(0)()
	return c.relay(req.UID, answer, resumed.Carrier)
}

// resume has the monitor pass a Resume on to the holder of its session. The error is for the log; it is
// errDenied if the client is to be told Denied, but not whether the session exists.
func (s *Server) resume(ctx context.Context, r *privsep.Resume) (*privsep.Resumed, error) {
	resumed, err := s.monitor.Resume(ctx, r)
	switch {
	case err != nil:
		return nil, fmt.Errorf("resume: %w", err)
	case resumed.NoSession:
		return resumed, errNoSession
	case resumed.Denied:
		return resumed, errNotAccepted
	}
	return resumed, nil
}
