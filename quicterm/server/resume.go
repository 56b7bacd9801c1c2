//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// deniedRate and deniedResumes limit the resumes of a session by one source that
	// its holder denies, per second and at once. A holder is asked no more then.
	deniedRate, deniedResumes = 5, 50
)

// errNotAccepted is the error of a resume that the holder denies.
var errNotAccepted = fmt.Errorf("%w: the holder does not accept the resume", errDenied)

// errNoSession is the error of a resume without a holder.
var errNoSession = fmt.Errorf("%w: resume of a session that does not exist", errDenied)

// A resumer is a source that resumes a session.
type resumer struct {
	id     wire.SessionID
	source netip.Prefix
}

// resume makes the connection another carrier of an attachment. Until the holder has
// accepted the proof, it is sent nothing but the Resume, and the client nothing. The client
// takes Denied for a sign of the session's end, so it is sent only if there is no holder or
// the holder itself refuses. After any other error, and above the rate limit, the client
// gets no answer, and tries again.
func (c *conn) resume(m wire.Message) error {
	var req wire.Resume
	if err := m.Decode(&req); err != nil {
		return err
	}
	s, from := c.server, resumer{req.ID, c.pending.source}
	c.log = c.log.With("uid", req.UID, "id", shortID(req.ID))
	if s.denied.empty(time.Now(), from) {
		return fmt.Errorf("resume: %w", errTooOften)
	}
	s.unauthenticated.move(time.Now(), c.pending, resumes)
	answer, toHolder, err := s.resume(c.incoming.Context(), &req, m, c.carrier.Datagrams())
	if errors.Is(err, errNotAccepted) {
		s.denied.allow(time.Now(), from)
		s.unauthenticated.replays.allow(time.Now(), from.source)
	}
	if errors.Is(err, errDenied) {
		s.unauthenticated.leave(c.pending)
		c.sendLast(&wire.Denied{Rebooted: s.boot.Mark(req.ID).Differs(req.Boot)})
	}
	if err != nil {
		return err
	}
	s.unauthenticated.prove(c.pending)
	if c.local == nil {
		s.accounts.join(req.UID, c.member)
	}
	c.carrier.SetDeadline(time.Time{})
	if answer.Type != wire.TypeResumed {
		return c.relay(req.UID, answer, toHolder) // a refusal, which ends the carrier
	}
	var by wire.Resumed
	l, err := resumedBy(req.UID, answer, &by)
	c.provenAt = s.attachments.provenAt(attachmentID{req.ID, req.Instance}, l)
	if err == nil {
		answer, err = wire.New(&wire.Resumed{}) // the client is not told who let it in
	}
	if err == nil {
		err = c.server.rights.refused(c.incoming.Context(), c.right(l))
	}
	if err != nil {
		toHolder.Close()
		if withdrawn(err) {
			c.sendLast(refusal(err))
		}
		return fmt.Errorf("resume: %w", err)
	}
	defer c.guard(l, 0)()
	defer s.attachments.remove(s.attachments.resume(c, &req, by))
	return c.relay(req.UID, answer, toHolder)
}

// resumedBy returns the admission of a client that resumes, as its holder knows it.
func resumedBy(uid uint32, answer wire.Message, r *wire.Resumed) (admission, error) {
	if err := answer.Decode(r); err != nil {
		return admission{}, err
	}
	return admission{uid: uid, account: r.Account, key: string(r.Key), scope: r.Scope, noPTY: r.NoPTY}, nil
}

// resume passes a Resume on to the holder of its session. The error is for the log; it is
// errDenied if the client is to be told Denied, but not whether the session exists.
func (s *Server) resume(ctx context.Context, req *wire.Resume, m wire.Message, datagrams bool) (wire.Message, carrier.Carrier, error) {
	if !s.serves(req.UID) {
		return m, nil, fmt.Errorf("resume of a session of user id %d, which this daemon does not serve", req.UID)
	}
	answer, c, err := s.holders.Carry(ctx, req.UID, req.ID, &wire.Open{}, m, datagrams)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil, errNoSession
	case err != nil:
		return m, nil, fmt.Errorf("resume: %w", err)
	case answer.Type == wire.TypeDenied:
		c.Close()
		return m, nil, errNotAccepted
	}
	return answer, c, nil
}
