//go:build linux || darwin

package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/enrolled"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxShareTime is for how long a share may be good.
const maxShareTime = 30 * 24 * time.Hour

// errGuest is the error of a request of a guest.
var errGuest = &wire.Error{Text: "a share lets its guest into one session, and no further"}

func (s *Sessions) keyTask(ctx context.Context, a *account.Account, task wire.KeyTask) (*wire.Keys, error) {
	task.Dir = enrolled.Dir(a.Home)
	answer, err := s.task(ctx, a, &wire.Launch{Keys: &task})
	if err != nil {
		return nil, err
	}
	keys := new(wire.Keys)
	if answer.Decode(new(wire.Done)) == nil {
		return keys, nil
	}
	if err := answer.Decode(keys); err != nil {
		return nil, err
	}
	for _, k := range keys.Keys { // its process may be another one than ours
		if len(k.Sum) != sha256.Size {
			return nil, errors.New("an enrolled key without its hash")
		}
	}
	return keys, nil
}

// useKey records that an enrolled key lets a client in, or returns why it does not: it may have been removed since it was
// looked at last.
func (s *Monitor) useKey(ctx context.Context, a *account.Account, e *auth.Enrolled) error {
	sum := sha256.Sum256(e.Key)
	_, err := s.keyTask(ctx, a, wire.KeyTask{Task: wire.KeysUse, Sum: sum[:]})
	return err
}

// Keys returns the enrolled keys of a client's account.
func (s *Monitor) Keys(ctx context.Context, by *privsep.By) (*wire.Keys, error) {
	c, end, err := s.serve(ctx, s.client, by)
	if err != nil {
		return nil, err
	}
	defer end()
	if c.restricted() {
		return nil, errRestricted
	}
	return s.keyTask(ctx, c.account, wire.KeyTask{Task: wire.KeysList})
}

func (c *client) restricted() bool { return c.allowed.Command != "" || c.allowed.NoPTY }

var errRestricted = &wire.Error{Text: "a key with a command, or without a terminal, sees and enrolls no keys"}

// Enroll lets another key log in to the account.
func (s *Monitor) Enroll(ctx context.Context, req *privsep.Enroll) (*wire.Enrolled, error) {
	c, end, err := s.serve(ctx, s.changing, &req.By)
	if err != nil {
		return nil, err
	}
	defer end()
	done, err := c.mayEnroll(req.Request.Kind)
	if err != nil {
		return nil, err
	}
	e, err := c.enrollment(ctx, &req.Request)
	if err == nil {
		err = c.enroll(ctx, e)
	}
	if err != nil {
		done(false)
		return nil, err
	}
	done(true)
	c.log.Info("client has enrolled a key", "event", "enroll", "kind", e.Kind, "name", e.Name,
		"key", privsep.Fingerprint(e.Key))
	return &wire.Enrolled{Expires: e.Expires}, nil
}

// mayEnroll returns why a login may not enroll a key of a kind. Otherwise the caller calls done.
func (c *client) mayEnroll(kind string) (done func(enrolled bool), err error) {
	by := c.allowed.Enrolled
	switch {
	case c.restricted():
		return nil, errRestricted
	case by == nil:
		return func(bool) {}, nil
	case by.Kind != auth.KindLink || kind != auth.KindDevice:
		return nil, errorf(wire.CodeFailed,
			"a %s enrolls no %s: use qt on a machine that logs in with a key of its own, or by ssh", by.Kind, kind)
	}
	l := &c.server.logins
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.enrolled {
		return nil, errorf(wire.CodeFailed, "the link has enrolled a device already")
	}
	c.enrolled = true
	return func(enrolled bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.enrolled = enrolled
	}, nil
}

// enrollment returns the key that a client asks for.
func (c *client) enrollment(ctx context.Context, req *wire.Enroll) (*auth.Enrolled, error) {
	now := time.Now()
	e := &auth.Enrolled{
		Key: req.Key, Kind: req.Kind, Name: req.Name, Made: now.Unix(), Used: now.Unix(), Types: req.Types, Once: req.Once,
	}
	switch by := c.allowed.Enrolled; {
	case by != nil: // a link is of the key that has enrolled it
		e.By, e.ByKind = by.By, by.ByKind
	case c.Key != "":
		e.By = []byte(c.Key)
	default:
		e.ByKind = c.credential.Proof
	}
	switch req.Kind {
	case auth.KindLink:
		e.Expires = now.Add(auth.LinkTime).Unix()
	case auth.KindShare:
		good := time.Duration(req.Seconds) * time.Second
		if good <= 0 || good > maxShareTime {
			return nil, errorf(wire.CodeFailed, "a share is good for 1 second to %d days", maxShareTime/(24*time.Hour))
		}
		found, err := c.server.find(ctx, c.account.UID, c.open(), req.Session, anyTerminal)
		if err != nil {
			return nil, err
		}
		if !found.state.PTY || found.state.Ended {
			return nil, errorf(wire.CodeFailed, "session %q has no terminal, or is over", found.state.Name)
		}
		e.Expires, e.Session = now.Add(good).Unix(), found.id.String()
	}
	if err := e.Check(); err != nil {
		return nil, errorf(wire.CodeFailed, "%v", err)
	}
	return e, nil
}

// enroll keeps a key, if it lets its client in then: whether it does depends on all that a login does. A link may have been
// revoked meanwhile.
func (c *client) enroll(ctx context.Context, e *auth.Enrolled) error {
	sum := sha256.Sum256(e.Key)
	task := wire.KeyTask{Task: wire.KeysAdd, Sum: sum[:], Line: e.Line()}
	if _, err := c.server.keyTask(ctx, c.account, task); err != nil {
		return err
	}
	v, err := c.server.access.Key(ctx, c.account, c.path.From(), c.path.At(), e.Key)
	if err == nil {
		err = v.Refused
	}
	if err == nil && (v.Allowed.Enrolled == nil || v.Allowed.Enrolled.Kind != e.Kind) {
		err = errors.New("an authorized_keys file has the key already")
	}
	if err == nil && c.allowed.Enrolled != nil {
		err = c.server.access.Look(ctx, c.right(&c.path))
	}
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), promptTime)
	defer cancel()
	_, failed := c.server.keyTask(ctx, c.account, wire.KeyTask{Task: wire.KeysRemove, Sum: sum[:]})
	return errors.Join(errorf(wire.CodeFailed, "%v", err), failed)
}

// revokeAll takes access from the clients of an account, or from those of a key, and removes the enrolled keys that are
// meant: these first, with the logins by them, or they would let the clients in again. It takes access also if that fails.
func (s *Monitor) revokeAll(
	ctx context.Context, log *slog.Logger, a *account.Account, open *wire.Open, request *wire.Revoke,
) (*wire.Revoked, error) {
	keys, err := s.keyTask(ctx, a, wire.KeyTask{Task: wire.KeysRemove, Sum: request.Key})
	if err != nil {
		keys, err = new(wire.Keys), fmt.Errorf("enrolled keys may still let clients in: %w", err)
	}
	s.logins.removeKeys(a.UID, keys.Keys)
	total := s.revokeOf(ctx, log, a.UID, open, request)
	total.Keys = uint32(len(keys.Keys))
	if request.All {
		return total, err
	}
	for _, k := range keys.Keys {
		if string(k.Sum) == string(request.Key) {
			continue
		}
		log.Info("enrolled key removed", "event", "revoke", "kind", k.Kind, "name", k.Name,
			"key", "SHA256:"+base64.RawStdEncoding.EncodeToString(k.Sum))
		one := s.revokeOf(ctx, log, a.UID, open, &wire.Revoke{Key: k.Sum})
		total.Clients, total.Silent = total.Clients+one.Clients, max(total.Silent, one.Silent)
	}
	return total, err
}
