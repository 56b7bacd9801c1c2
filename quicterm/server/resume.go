//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// resumeRate and resumeBurst limit the resumes of a session, per second and at
	// once. A client without a path makes 40 a second, and up to 64 at once.
	resumeRate, resumeBurst = 50, 100
)

// resume makes the connection another carrier of an attachment. Until the holder has
// accepted the proof, it is sent nothing but the Resume, and the client nothing. The client
// takes Denied for a sign of the session's end, so it is sent only if there is no holder or
// the holder itself refuses. After any other error, and above the rate limit, the client
// gets no answer, and tries again.
func (c *conn) resume(m wire.Message, authenticated func()) error {
	var req wire.Resume
	if err := m.Decode(&req); err != nil {
		return err
	}
	if !c.server.resumes.allow(time.Now(), req.ID) {
		return fmt.Errorf("resume: %w", errTooOften)
	}
	answer, toHolder, err := c.server.resume(c.incoming.Context(), &req, m)
	if errors.Is(err, errDenied) {
		c.sendLast(&wire.Denied{Rebooted: c.server.boot.Mark(req.ID).Differs(req.Boot)})
	}
	if err != nil {
		return err
	}
	authenticated()
	c.carrier.SetDeadline(time.Time{})
	return c.relay(answer, toHolder)
}

// resume passes a Resume on to the holder of its session. The error is for the log; it is
// errDenied if the client is to be told Denied, but not whether the session exists.
func (s *Server) resume(ctx context.Context, req *wire.Resume, m wire.Message) (wire.Message, carrier.Carrier, error) {
	if !s.serves(req.UID) {
		return m, nil, fmt.Errorf("resume of a session of user id %d, which this daemon does not serve", req.UID)
	}
	answer, c, err := s.holders.Carry(ctx, req.UID, req.ID, &wire.Open{}, m)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil, fmt.Errorf("%w: resume of a session that does not exist, of user id %d", errDenied, req.UID)
	case err != nil:
		return m, nil, fmt.Errorf("resume: %w", err)
	case answer.Type == wire.TypeDenied:
		c.Close()
		return m, nil, fmt.Errorf("%w: the holder does not accept the resume", errDenied)
	}
	return answer, c, nil
}
