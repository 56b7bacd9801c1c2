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

// handle serves one request of an authenticated client. It reports whether the
// connection is at its end.
func (c *conn) handle(ctx context.Context, m wire.Message) (done bool, err error) {
	switch m.Type {
	case wire.TypeList:
		return false, serveRequest(ctx, c, m, new(wire.List), c.server.monitor.List, c.by())
	case wire.TypeDescribe:
		return false, serveRequest(ctx, c, m, new(wire.Describe), c.server.monitor.Describe, c.by())
	case wire.TypeListKeys:
		return false, serveRequest(ctx, c, m, new(wire.ListKeys), c.server.monitor.Keys, c.by())
	case wire.TypeEnroll:
		req := &privsep.Enroll{By: *c.by()}
		return false, serveRequest(ctx, c, m, &req.Request, c.server.monitor.Enroll, req)
	case wire.TypeKill, wire.TypeClear, wire.TypeRename:
		var named wire.Kill // all three begin with the name of a session
		if err := (wire.Message{Type: wire.TypeKill, Payload: m.Payload}).Decode(&named); err != nil {
			return false, err
		}
		pass := &privsep.Pass{
			By: *c.by(), Session: named.Session, Others: named.Others, Type: m.Type, Payload: m.Payload,
		}
		answer, err := c.server.monitor.Pass(ctx, pass)
		if err != nil {
			return false, wire.Send(c.carrier, asError(err))
		}
		return false, wire.Write(c.carrier, wire.Message(*answer))
	case wire.TypeRevoke:
		req := &privsep.Revoke{By: *c.by()}
		return false, serveRequest(ctx, c, m, &req.Request, c.server.monitor.Revoke, req)
	case wire.TypeAttach:
		var req wire.Attach
		if err := m.Decode(&req); err != nil {
			return false, err
		}
		if err := c.attach(ctx, &req, m); err != nil {
			c.refusedSession(req.Session, err)
			c.sendLast(asError(err))
		}
		return true, nil
	}
	return false, wire.Send(c.carrier, &wire.Error{
		Code: wire.CodeUnknown,
		Text: fmt.Sprintf("the server does not know message %d: it may be older than this client", m.Type),
	})
}

// serveRequest decodes a request into body, which is empty or part of req, and sends what the monitor answers.
func serveRequest[Q, A any, B interface {
	*A
	wire.Body
}](ctx context.Context, c *conn, m wire.Message, body wire.Body, call privsep.Call[Q, A], req *Q) error {
	if err := m.Decode(body); err != nil {
		return err
	}
	answer, err := call(ctx, req)
	if err != nil {
		return wire.Send(c.carrier, asError(err))
	}
	return wire.Send(c.carrier, B(answer))
}

// attach has the monitor find or start the session that a request is for and pass the request on to
// its holder, and relays until the client or the holder ends the carrier.
func (c *conn) attach(ctx context.Context, req *wire.Attach, m wire.Message) error {
	attached, err := c.server.monitor.Attach(ctx, &privsep.Attach{
		By: *c.by(), Mode: req.Mode, Session: req.Session, Instance: req.Instance, PTY: req.PTY, Size: req.Size,
		Env: req.Env, Command: req.Command, Role: req.Role, Payload: m.Payload, Datagrams: c.carrier.Datagrams(),
		Dir: req.Dir, Required: req.Required, Side: req.Side, Terminfo: req.Terminfo, Agent: len(req.Agent) > 0,
	})
	if err != nil {
		return err
	}
	c.carrier.SetDeadline(time.Time{})
	answer := wire.Message(attached.Answer)
	if answer.Type == wire.TypeAttached {
		l := c.server.attachments.attach(c, req, attached.ID, answer)
		defer c.server.attachments.remove(l)
		c.log = l.log()
	} else {
		refusal := new(wire.Error)
		if err := answer.Decode(refusal); err != nil {
			return err
		}
		c.refusedSession(req.Session, refusal)
	}
	defer c.recheck(privsep.RightTime)()
	return c.relay(c.login.UID, answer, attached.Carrier)
}

// refusedSession records that a client gets no session, which it may have named.
func (c *conn) refusedSession(name string, err error) {
	c.server.counts.countOf("quicterm_refusals_total", "reason", sessionRefusal(err))
	log := c.log
	if name != "" {
		log = log.With("session", wire.Printable(name, wire.MaxName))
	}
	log.Warn("client gets no session", "event", "refuse", "error", err)
}

// asError returns the message that tells an authenticated client of an error.
func asError(err error) *wire.Error {
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return &wire.Error{Text: err.Error()}
}
