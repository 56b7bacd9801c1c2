//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// resumeRate and resumeBurst limit the resumes of a session, per second and at
	// once. A client without a path makes 40 a second, and up to 64 at once.
	resumeRate, resumeBurst = 50, 100
)

// resume makes the connection another carrier of an attachment. Until the holder has
// accepted the proof, it is sent nothing but the Resume, and the client nothing. A
// client above the rate limit gets no answer: it might take Denied for the end of
// the session.
func (c *conn) resume(m wire.Message, authenticated func()) error {
	var req wire.Resume
	if err := m.Decode(&req); err != nil {
		return err
	}
	if !c.server.resumes.allow(time.Now(), req.ID) {
		return fmt.Errorf("resume: %w", errTooOften)
	}
	answer, toHolder, err := c.server.resume(c.incoming.Context(), &req, m)
	if err == nil && answer.Type == wire.TypeDenied {
		toHolder.Close()
		err = errors.New("the holder does not accept the resume")
	}
	if err != nil {
		c.sendLast(&wire.Denied{Boot: holder.BootMark(req.ID)})
		return fmt.Errorf("%w: %w", errDenied, err)
	}
	authenticated()
	c.carrier.SetDeadline(time.Time{})
	return c.relay(answer, toHolder)
}

// resume passes a Resume on to the holder of its session. The error is for the log:
// the client is not told whether the session exists.
func (s *Server) resume(ctx context.Context, req *wire.Resume, m wire.Message) (wire.Message, carrier.Carrier, error) {
	if !s.serves(req.UID) {
		return m, nil, fmt.Errorf("resume of a session of user id %d, which this daemon does not serve", req.UID)
	}
	answer, c, err := s.holders.Carry(ctx, req.UID, req.ID, &wire.Open{}, m)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("resume of a session that does not exist, of user id %d", req.UID)
	}
	return answer, c, err
}
