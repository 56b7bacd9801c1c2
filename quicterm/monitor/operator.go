//go:build linux || darwin

package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// MaxEnded bounds the sessions of a request to end some: all of them are asked at once, as long as each may take.
	MaxEnded = processes.MaxAsks

	// maxOperatorForm bounds the form of an operator's request, in bytes: MaxEnded ids and a reason.
	maxOperatorForm = 16 << 10

	// maxEndReason is how many bytes of an operator's reason are told: with a name it fits into a notice.
	maxEndReason = 200
)

// An Ended is what has become of a session that the operator ends.
type Ended struct {
	ID      string `json:"id"` // as given, if no session has it
	Account string `json:"account,omitempty"`
	Name    string `json:"name,omitempty"`
	Error   string `json:"error,omitempty"` // why it does not end
}

// A controlConn is a connection to the control socket. The user id of the process at its other end takes the place
// of an address.
type controlConn struct {
	*net.UnixConn
	uid uint32
}

func (c controlConn) RemoteAddr() net.Addr {
	return &net.UnixAddr{Net: "unix", Name: strconv.FormatUint(uint64(c.uid), 10)}
}

// A controlListener accepts the connections of root and of the daemon's own account.
type controlListener struct {
	*net.UnixListener
	own uint32
}

func (l controlListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := rundir.PeerUID(c); err == nil && (uid == 0 || uid == l.own) {
			return controlConn{c, uid}, nil
		}
		c.Close()
	}
}

// An operator is who asks at the control socket.
type operator struct {
	uid  uint32
	name string
}

// operator returns who has made a request.
func (s *Monitor) operator(r *http.Request) (o operator, err error) {
	uid, err := strconv.ParseUint(r.RemoteAddr, 10, 32)
	if err != nil {
		return o, fmt.Errorf("the asking process is not known: %w", err)
	}
	o = operator{uint32(uid), fmt.Sprintf("user id %d", uid)}
	if a, err := s.names.LookupID(r.Context(), o.uid); err == nil {
		o.name = a.Name
	}
	return o, nil
}

// operate serves a request that changes something: do gets its form, and its answer is sent as JSON.
func (s *Monitor) operate(do func(ctx context.Context, by operator, r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxOperatorForm)
		by, err := s.operator(r)
		if err == nil {
			err = r.ParseForm()
		}
		var answer any
		if err == nil {
			ctx, cancel := context.WithTimeout(r.Context(), operatorTime)
			defer cancel()
			answer, err = do(ctx, by, r)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer)
	}
}

// locate returns the session whose id begins so, of all in some, or an error for people.
func locate(some []inspected, prefix string) (found inspected, err error) {
	if len(prefix) < minIDPrefix {
		return found, fmt.Errorf("an id has at least %d digits: qtd ls lists them", minIDPrefix)
	}
	n := 0
	for _, one := range some {
		if strings.HasPrefix(one.id.String(), prefix) {
			found = one
			n++
		}
	}
	switch n {
	case 0:
		return found, errors.New("there is no such session, or it does not answer: qtd ls lists them")
	case 1:
		return found, nil
	}
	return found, errors.New("more than one session has an id that begins so: give more digits")
}

// end ends sessions, given by the beginnings of their ids, and tells their clients who does so and why. The answers are
// in the order of the ids.
func (s *Monitor) end(ctx context.Context, by operator, ids []string, reason string) []Ended {
	ctx = processes.OnSide(ctx, processes.Operator)
	all, _ := s.inspectAll(ctx) // within a time: the directories of an account may not answer
	reason = wire.Printable(reason, maxEndReason)
	answers := make([]Ended, len(ids))
	found := make([]inspected, len(ids))
	var named []int
	for i, prefix := range ids {
		one, err := locate(all, prefix)
		if err != nil {
			answers[i] = Ended{ID: wire.Printable(prefix, maxEndReason), Error: err.Error()}
			continue
		}
		found[i], named = one, append(named, i)
		answers[i] = Ended{ID: one.id.String(), Name: one.report.Name, Account: s.accountName(ctx, one.uid)}
	}
	askEach(s.Sessions, s.log, named, func(i int) (struct{}, error) {
		return struct{}{}, s.endOne(ctx, by, found[i], &answers[i], reason)
	}, func(i int, _ struct{}, err error) {
		if err != nil {
			answers[i].Error = err.Error()
		}
	})
	return answers
}

func (s *Monitor) endOne(ctx context.Context, by operator, one inspected, answer *Ended, reason string) error {
	end, err := wire.New(&wire.End{Reason: reason})
	if err != nil {
		return err
	}
	done, err := s.holders.Ask(ctx, one.uid, one.id, &wire.Open{Client: by.name}, end)
	if err != nil {
		return err
	}
	if err := done.Decode(new(wire.Done)); err != nil {
		return err
	}
	s.log.Info("operator ends a session", "event", "kill", "asked_by", by.uid, "account", answer.Account, "uid", one.uid,
		"session", answer.Name, "id", one.id.Short(), "reason", reason)
	return nil
}

func (s *Monitor) accountName(ctx context.Context, uid uint32) string {
	if a, err := s.names.LookupID(ctx, uid); err == nil {
		return a.Name
	}
	return strconv.FormatUint(uint64(uid), 10)
}

// revokeAccess takes access from all clients of an account or, if that is empty, from those that a key has let in,
// of whichever account.
func (s *Monitor) revokeAccess(ctx context.Context, by operator, account string, key []byte) (*wire.Revoked, error) {
	request := &wire.Revoke{All: account != "", Key: key}
	uids := s.holders.Accounts()
	log := s.log.With("asked_by", by.uid)
	if account != "" {
		a, err := s.names.Lookup(ctx, account)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", wire.Printable(account, maxEndReason), err)
		}
		uids, log = []uint32{a.UID}, log.With("account", a.Name, "uid", a.UID)
	}
	revoke := func(ctx context.Context, uid uint32) (*wire.Revoked, error) {
		open := &wire.Open{Client: by.name}
		a, err := s.names.LookupID(ctx, uid)
		if err != nil { // it enrolls no keys any more
			return s.revokeOf(ctx, log, uid, open, request), nil
		}
		revoked, err := s.revokeAll(ctx, log, a, open, request)
		if err != nil {
			log.Warn("access is revoked, and enrolled keys may let clients in again", "account", a.Name, "uid", uid, "error", err)
		}
		return revoked, nil
	}
	answers, silent := askAccounts(ctx, s.Sessions, askTime, uids, revoke)
	total := &wire.Revoked{Silent: uint32(silent)}
	for _, one := range answers {
		total.Clients, total.Silent, total.Keys = total.Clients+one.Clients, total.Silent+one.Silent, total.Keys+one.Keys
	}
	log.Info("operator has revoked access", "event", "revoke", "revoked", revokedName(account != "", key),
		"clients", total.Clients, "silent", total.Silent, "keys", total.Keys)
	return total, nil
}
