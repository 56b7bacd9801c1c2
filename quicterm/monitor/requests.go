//go:build linux || darwin

package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/machine/systemd"
	"github.com/quicterm/quicterm/quicterm/monitor/access"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// serve returns the client of a request, which find finds, when the account may be served. The caller calls end.
func (s *Monitor) serve(
	ctx context.Context, find func(*privsep.By) (*client, error), by *privsep.By,
) (c *client, end func(), err error) {
	if c, err = find(by); err != nil {
		return nil, nil, err
	}
	end, err = s.accounts.requests.Take(ctx, processes.AskerOf(ctx, c.account.UID))
	return c, end, err
}

// List returns the sessions that a client may see.
func (s *Monitor) List(ctx context.Context, by *privsep.By) (*wire.Listing, error) {
	c, end, err := s.serve(ctx, s.client, by)
	if err != nil {
		return nil, err
	}
	defer end()
	return list(c.withLost(ctx, s.sessions(ctx, c.account.UID, c.open(), &wire.Query{Activity: true}))), nil
}

// Describe returns what a client may know of this server.
func (s *Monitor) Describe(ctx context.Context, by *privsep.By) (*wire.Description, error) {
	c, end, err := s.serve(ctx, s.client, by)
	if err != nil {
		return nil, err
	}
	defer end()
	sessions := s.sessions(ctx, c.account.UID, c.open(), &wire.Query{})
	d := &wire.Description{
		Software:    s.software,
		Time:        time.Now().UnixMilli(),
		Client:      by.Path.String(),
		Proof:       c.credential.Proof,
		MaxSessions: uint32(s.settings().MaxSessionsPerUser),
		MaxMemory:   uint64(s.memory.limit),
		Granted:     s.granted,
		HostKey:     s.hostKeys[0].ID[:],
		Page:        s.page(),
	}
	for _, e := range sessions {
		d.Memory += e.state.Memory
		if !e.state.Ended {
			d.Sessions++
		}
	}
	if d.Logout = wire.LogoutKeeps; systemd.EndsAtLogout(ctx) != "" {
		d.Logout = wire.LogoutEnds
	}
	return d, nil
}

// Pass passes a request on to the holder of the session with the given name or id.
func (s *Monitor) Pass(ctx context.Context, p *privsep.Pass) (*privsep.Answer, error) {
	passed := []wire.Type{wire.TypeKill, wire.TypeClear, wire.TypeRename}
	if !slices.Contains(passed, p.Type) || len(p.Payload) > wire.MaxMessage {
		return nil, fmt.Errorf("message %d is not passed on", p.Type)
	}
	c, end, err := s.serve(ctx, s.changing, &p.By)
	if err != nil {
		return nil, err
	}
	defer end()
	m := wire.Message{Type: p.Type, Payload: p.Payload}
	if p.Type == wire.TypeRename {
		return c.rename(ctx, p.Session, m)
	}
	if p.Type == wire.TypeKill && len(p.Others) > 0 {
		return c.killAll(ctx, append([]string{p.Session}, p.Others...), m)
	}
	e, err := c.findOrLost(ctx, p.Session, detached)
	if err != nil {
		return nil, err
	}
	return answered(c.pass(ctx, e, m))
}

// killAll ends sessions by a Kill, as many at a time as may be asked.
func (c *client) killAll(ctx context.Context, names []string, m wire.Message) (*privsep.Answer, error) {
	killed := &wire.Killed{Errors: make([]wire.Error, len(names))}
	failed := func(i int, err error) {
		if refusal, ok := errors.AsType[*wire.Error](err); ok {
			killed.Errors[i] = *refusal
		} else if err != nil {
			killed.Errors[i].Text = err.Error()
		}
	}
	found := make(map[int]*entry)
	for i, name := range names {
		if e, err := c.findOrLost(ctx, name, detached); err == nil {
			found[i] = new(*e) // and not the others that it was found among
		} else {
			failed(i, err)
		}
	}
	askEach(c.server.Sessions, c.log, slices.Collect(maps.Keys(found)), func(i int) (wire.Message, error) {
		return c.pass(ctx, found[i], m)
	}, func(i int, answer wire.Message, err error) {
		refusal := new(wire.Error)
		if err == nil && answer.Decode(refusal) == nil {
			err = refusal
		}
		failed(i, ended(err))
	})
	return answered(wire.New(killed))
}

// pass passes a Kill or a Clear on to the holder of a session.
func (c *client) pass(ctx context.Context, e *entry, m wire.Message) (wire.Message, error) {
	if e.record {
		return c.passToRecord(ctx, e, m)
	}
	answer, err := c.server.holders.Ask(ctx, c.account.UID, e.id, c.open(), m)
	if err == nil && answer.Type != wire.TypeError {
		log := c.log.With("session", e.state.Name, "id", e.id.Short())
		if m.Type == wire.TypeKill {
			log.Info("client ends a session", "event", "kill")
		} else {
			log.Info("client has cleared the history of a session", "event", "clear")
		}
	}
	return answer, err
}

// rename passes a Rename on to the holder of a session that lives. No new session gets the name meanwhile.
func (c *client) rename(ctx context.Context, session string, m wire.Message) (*privsep.Answer, error) {
	var req wire.Rename
	if err := m.Decode(&req); err != nil {
		return nil, err
	}
	if err := checkName(req.Name); err != nil {
		return nil, err
	}
	s, uid := c.server, c.account.UID
	release, err := s.accounts.creating.Take(ctx, uid)
	if err != nil {
		return nil, err
	}
	defer release()
	e, err := c.findOrLost(ctx, session, anyTerminal)
	if err != nil {
		return nil, err
	}
	if e.record {
		return nil, lostError(e)
	}
	for _, other := range s.sessions(ctx, uid, c.open(), &wire.Query{}) {
		if other.state.Name == req.Name && other.id != e.id {
			return nil, nameTaken(req.Name)
		}
	}
	answer, err := s.holders.Ask(ctx, uid, e.id, c.open(), m)
	if err == nil && answer.Type == wire.TypeDone {
		c.log.Info("session renamed", "event", "rename", "session", e.state.Name, "id", e.id.Short(), "name", req.Name)
		s.census.rename(e.id, req.Name)
	}
	return answered(answer, err)
}

// Revoke has all holders of the account take rights to resume.
func (s *Monitor) Revoke(ctx context.Context, req *privsep.Revoke) (*wire.Revoked, error) {
	ctx = processes.OnSide(ctx, processes.Revoker)
	c, end, err := s.serve(ctx, s.changing, &req.By)
	if err != nil {
		return nil, err
	}
	defer end()
	request := &req.Request
	switch {
	case c.Scope != "":
		return nil, &wire.Error{Text: "a key with a command may revoke nothing"}
	case request.All != (len(request.Key) == 0), !request.All && len(request.Key) != sha256.Size:
		return nil, &wire.Error{Text: "name one key, or all"}
	}
	revoked, err := s.revokeAll(ctx, c.log, c.account, c.open(), request)
	c.log.Info("client has revoked access", "event", "revoke", "revoked", revokedName(request.All, request.Key),
		"clients", revoked.Clients, "silent", revoked.Silent, "keys", revoked.Keys)
	return revoked, err
}

// revokedName says in the log whose access is revoked.
func revokedName(all bool, key []byte) string {
	if all {
		return "all"
	}
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(key)
}

// Attach finds or starts the session that a request is for, and passes the request on to
// its holder. The answer's carrier is that to the holder.
func (s *Monitor) Attach(ctx context.Context, req *privsep.Attach) (*privsep.Attached, error) {
	c, err := s.clientOrGuest(&req.By)
	if err == nil {
		err = c.mayChange()
	}
	if err != nil {
		return nil, err
	}
	if len(req.Payload) > wire.MaxMessage {
		return nil, errors.New("message longer than allowed")
	}
	if err := s.logins.attach(req.By.Login); err != nil {
		return nil, err
	}
	if closed := nologin(s.all, c.account.UID); closed != nil {
		return nil, closed
	}
	c.instance = req.Instance
	id, err := c.findOrCreate(ctx, req)
	if err != nil {
		return nil, err
	}
	m := wire.Message{Type: wire.TypeAttach, Payload: req.Payload}
	answer, toHolder, err := s.holders.Carry(ctx, c.account.UID, id, c.open(), m, req.Datagrams)
	if err != nil {
		return nil, ended(err)
	}
	return &privsep.Attached{ID: id, Answer: privsep.Answer(answer), Carrier: toHolder}, nil
}

// Resume passes a Resume on to the holder of its session. A client without a login is let in by the holder alone,
// which checks the proof; what let it in is checked meanwhile, unless it is known to do so no more.
func (s *Monitor) Resume(ctx context.Context, r *privsep.Resume) (*privsep.Resumed, error) {
	m := wire.Message{Type: wire.TypeResume, Payload: r.Payload}
	var req wire.Resume
	if err := m.Decode(&req); err != nil {
		return nil, err
	}
	if !s.serves(req.UID) {
		return nil, fmt.Errorf("resume of a session of user id %d, which this daemon does not serve", req.UID)
	}
	answer, toHolder, err := s.holders.Carry(ctx, req.UID, req.ID, &wire.Open{}, m, r.Datagrams)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &privsep.Resumed{NoSession: true, Gone: s.isGone(&req)}, nil
	case err != nil:
		return nil, err
	case answer.Type == wire.TypeDenied:
		toHolder.Close()
		return &privsep.Resumed{Denied: true, Gone: s.isGone(&req)}, nil
	case answer.Type != wire.TypeResumed: // a refusal, which ends the carrier
		return &privsep.Resumed{Answer: privsep.Answer(answer), Carrier: toHolder}, nil
	}
	resumed, err := s.resumed(ctx, r, &req, answer, toHolder)
	if err != nil {
		toHolder.Close()
		return nil, err
	}
	return resumed, nil
}

// isGone reports whether the session of a Resume that is denied has ended without a word: the machine was started
// anew, or the holder was killed. Only who knows the session's mark learns the second.
func (s *Monitor) isGone(req *wire.Resume) bool {
	mark := s.boot.Mark(req.ID)
	return mark.Differs(req.Boot) || mark == req.Boot && mark != wire.BootMark{} && s.census.wasKilled(req.ID)
}

// resumed returns the answer to a client whose holder accepts its Resume.
func (s *Monitor) resumed(
	ctx context.Context, r *privsep.Resume, req *wire.Resume, answer wire.Message, toHolder carrier.Carrier,
) (*privsep.Resumed, error) {
	var by wire.Resumed
	if err := answer.Decode(&by); err != nil {
		return nil, err
	}
	l := access.Admission{UID: req.UID, Account: by.Account, Key: string(by.Key), Scope: by.Scope, NoPTY: by.NoPTY}
	p := &proven{Admission: l, credential: privsep.CredentialOf(&by)}
	// A holder that lies about it could say as well that there was no key. No key is proven in the future.
	if by.Proven > 0 && by.Proven <= time.Now().Unix() {
		p.at = time.Unix(by.Proven, 0)
	}
	if err := s.rights.Refused(ctx, p.right(&r.Path)); err != nil {
		return nil, err
	}
	login, err := s.login(p, r.Path)
	if err != nil {
		return nil, err
	}
	answer, err = wire.New(&wire.Resumed{}) // the client is not told who let it in
	if err != nil {
		return nil, err
	}
	return &privsep.Resumed{
		Answer: privsep.Answer(answer), Carrier: toHolder, Session: s.sessionName(req.ID), Away: by.Away,
		Login: *login,
	}, nil
}

// answered returns what a holder has answered, or why it has not.
func answered(m wire.Message, err error) (*privsep.Answer, error) {
	if err != nil {
		return nil, ended(err)
	}
	answer := privsep.Answer(m)
	return &answer, nil
}

// ended returns the error for a client whose session has ended since it was found, if err says that.
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
