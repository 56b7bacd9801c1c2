//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// handle serves one request of an authenticated client. It reports whether the
// connection is at its end.
func (c *conn) handle(ctx context.Context, m wire.Message) (done bool, err error) {
	if c.stays != nil && m.Type != wire.TypeList && m.Type != wire.TypeDescribe {
		return true, fmt.Errorf("message %d from a client that stays for List or Describe", m.Type)
	}
	switch m.Type {
	case wire.TypeList:
		var req wire.List
		if err := m.Decode(&req); err != nil {
			return false, err
		}
		listing, err := c.list(ctx)
		if err != nil {
			return false, err
		}
		if req.Stay {
			c.stay()
		}
		if c.stays != nil {
			c.carrier.SetDeadline(time.Now().Add(stayTime))
		}
		listing.Stays = c.stays != nil
		return false, wire.Send(c.carrier, listing)
	case wire.TypeDescribe:
		var req wire.Describe
		if err := m.Decode(&req); err != nil {
			return false, err
		}
		return false, c.describe(ctx, &req)
	case wire.TypeKill, wire.TypeClear:
		name, err := sessionOf(m)
		if err != nil {
			return false, err
		}
		answer, err := c.passOn(ctx, name, m)
		if err != nil {
			return false, wire.Send(c.carrier, asError(err))
		}
		return false, wire.Write(c.carrier, answer)
	case wire.TypeRevoke:
		var req wire.Revoke
		if err := m.Decode(&req); err != nil {
			return false, err
		}
		revoked, err := c.revoke(ctx, &req, m)
		if err != nil {
			return false, wire.Send(c.carrier, asError(err))
		}
		return false, wire.Send(c.carrier, revoked)
	case wire.TypeAttach, wire.TypeJoin:
		m.Type = wire.TypeAttach // older daemons refuse a Join, and holders need not know it
		var req wire.Attach
		if err := m.Decode(&req); err != nil {
			return false, err
		}
		err := c.checkNologin()
		if err == nil {
			err = c.attach(ctx, &req, m)
		}
		if err != nil {
			c.server.counts.refusals.Of(sessionRefusal(err)).Add(1)
			c.log.Warn("client gets no session", "event", "refuse", "account", c.account.Name, "proof", c.proof, "error", err)
			c.sendLast(asError(err))
		}
		return true, nil
	}
	return false, wire.Send(c.carrier, &wire.Error{
		Code: wire.CodeUnknown,
		Text: fmt.Sprintf("the server does not know message %d: it may be older than this client", m.Type),
	})
}

// list returns the sessions that the client may see.
func (c *conn) list(ctx context.Context) (*wire.Listing, error) {
	end, err := c.server.accounts.of(c.account.UID).begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return list(c.withLost(ctx, c.server.sessions(ctx, c.account.UID, c.open()))), nil
}

// sessionOf returns the name of the session that a request is for.
func sessionOf(m wire.Message) (string, error) {
	if m.Type == wire.TypeClear {
		var clear wire.Clear
		err := m.Decode(&clear)
		return clear.Session, err
	}
	var kill wire.Kill
	err := m.Decode(&kill)
	return kill.Session, err
}

// passOn passes a request on to the holder of the session with the given name or id.
func (c *conn) passOn(ctx context.Context, name string, m wire.Message) (wire.Message, error) {
	end, err := c.server.accounts.of(c.account.UID).begin(ctx)
	if err != nil {
		return m, err
	}
	defer end()
	e, err := c.findOrLost(ctx, name, detached)
	if err != nil {
		return m, err
	}
	if e.record {
		return c.passToRecord(ctx, e, m)
	}
	answer, err := c.server.holders.Ask(ctx, c.account.UID, e.id, c.open(), m)
	return answer, ended(err)
}

// attach finds or starts the session that a request is for, passes the request on to
// its holder, and relays until the client or the holder ends the carrier.
func (c *conn) attach(ctx context.Context, req *wire.Attach, m wire.Message) error {
	c.instance = req.Instance
	id, err := c.findOrCreate(ctx, req)
	if err != nil {
		return err
	}
	open := c.open()
	answer, toHolder, err := c.server.holders.Carry(ctx, c.account.UID, id, open, m, c.carrier.Datagrams())
	if err != nil {
		return ended(err)
	}
	c.carrier.SetDeadline(time.Time{})
	defer c.guard(c.admission(open), rightTime)()
	if answer.Type == wire.TypeAttached {
		defer c.server.attachments.remove(c.server.attachments.attach(c, req, id, answer))
	}
	return c.relay(c.account.UID, answer, toHolder)
}

// admission returns what let the client in.
func (c *conn) admission(open *wire.Open) admission {
	return admission{uid: c.account.UID, account: open.Account, key: string(open.Key), scope: open.Scope, noPTY: open.NoPTY}
}

// ended returns the error for a client whose session has ended since it was found,
// if err says that.
func ended(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &wire.Error{Code: wire.CodeNoSession, Text: "the session has just ended"}
	}
	return err
}

// errorf returns an error whose text the client shows.
func errorf(code wire.Code, format string, args ...any) *wire.Error {
	return &wire.Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// asError returns the message that tells an authenticated client of an error.
func asError(err error) *wire.Error {
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return &wire.Error{Text: err.Error()}
}
