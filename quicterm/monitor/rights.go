//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/keyfile"
	"github.com/quicterm/quicterm/quicterm/machine/sshd"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

const (
	// missingTime is for how long an account must not be found before that counts: the
	// name service says the same if it cannot reach the directory of a company.
	missingTime = 10 * time.Minute

	// maxRights bounds how many results are kept.
	maxRights = 1024
)

// An admission is what let a client in: an account, and what one of its keys was allowed. There
// is no key if a token let it in. Of a client that resumes all but uid is what the holder says,
// which the account may have made: the name says only which of several accounts with this uid.
type admission struct {
	uid     uint32
	account string
	key     string // RFC 4253, 6.6
	scope   string // see wire.Open
	noPTY   bool
}

func withdrawn(err error) bool {
	var w *privsep.Withdrawn
	return errors.As(err, &w)
}

// rights know which logins still let their clients in. They are safe for concurrent use.
type rights struct {
	look      func(context.Context, right) error // slow
	withdrawn *withdrawals

	mu      sync.Mutex
	results map[right]*result
	missing map[uint32]time.Time // since when an account is not found
}

// A right is an admission that is used from an address, at an address of the server.
type right struct {
	admission
	from, at netip.Addr

	// proven is when the client has proven that it has the certificate with which it has logged
	// in. It is zero for a plain key or a token, and if another daemon has served that login.
	proven time.Time
}

// A result is that of a check, which may be under way.
type result struct {
	done chan struct{} // closed when the check has ended
	at   time.Time     // of its start
	err  error
}

func newRights(look func(context.Context, right) error) *rights {
	return &rights{
		look: look, withdrawn: new(withdrawals),
		results: make(map[right]*result), missing: make(map[uint32]time.Time),
	}
}

// check returns nil if a right is one now, or was at most RightTime ago. It blocks until that
// is known or ctx ends. Checks of one right share one look.
func (r *rights) check(ctx context.Context, key right) error {
	for {
		r.mu.Lock()
		known, first := r.results[key], false
		if known == nil || known.ended() && (time.Since(known.at) >= privsep.RightTime || known.err != nil) {
			r.forgetLocked()
			known, first = &result{done: make(chan struct{}), at: time.Now()}, true
			r.results[key] = known
		}
		r.mu.Unlock()
		if first {
			return r.fill(ctx, key, known)
		}
		select {
		case <-known.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if !errors.Is(known.err, context.Canceled) { // which is the end of another client
			return known.err
		}
	}
}

// fill makes a check and keeps its result.
func (r *rights) fill(ctx context.Context, key right, known *result) (err error) {
	err = errors.New("the check has panicked") // which ends only the connection that makes it
	defer func() {
		defer close(known.done)
		r.mu.Lock()
		err = r.confirmLocked(key.uid, err)
		r.mu.Unlock()
		known.err = err
		r.record(key, err)
	}()
	return r.look(ctx, key)
}

// record keeps what a check of a right has told.
func (r *rights) record(key right, err error) {
	var w *privsep.Withdrawn
	if errors.As(err, &w) {
		r.withdrawn.add(key, w.Account)
	} else if err == nil {
		r.withdrawn.remove(key)
	}
}

func (r *result) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// confirmLocked takes it as withdrawn that an account does not exist when that was so for
// long enough.
func (r *rights) confirmLocked(uid uint32, err error) error {
	if !errors.Is(err, errMissing) {
		if err == nil || withdrawn(err) {
			delete(r.missing, uid)
		}
		return err
	}
	since, known := r.missing[uid]
	if !known {
		since = time.Now()
		r.missing[uid] = since
	}
	if time.Since(since) >= missingTime {
		return &privsep.Withdrawn{Reason: fmt.Sprintf("the account of user id %d does not exist any more", uid), Account: true}
	}
	return err
}

// forgetLocked makes room for a result.
func (r *rights) forgetLocked() {
	for key, known := range r.results {
		if len(r.results) < maxRights {
			return
		}
		if known.ended() {
			delete(r.results, key)
		}
	}
	if len(r.missing) >= maxRights {
		clear(r.missing)
	}
}

// refused returns why a right is none, if the same admission, or its whole account, was withdrawn
// when it was checked last, from any address: then it is checked again first. Otherwise it returns
// nil at once: the client is let in, and checked meanwhile.
func (r *rights) refused(ctx context.Context, key right) error {
	if !r.withdrawn.has(key) {
		return nil
	}
	if err := r.check(ctx, key); withdrawn(err) {
		return err
	}
	return nil
}

// errMissing is the error of an account that is not found.
var errMissing = errors.New("account is not found")

// lookup returns the account of an admission: that of its uid. Of several it is the one that was
// logged in to, as the holder says.
func (s *Monitor) lookup(ctx context.Context, by admission) (*account.Account, error) {
	a, err := s.names.LookupID(ctx, by.uid)
	if err != nil || a.Name == by.account {
		return a, err
	}
	if named, err := s.names.Lookup(ctx, by.account); err == nil && named.UID == by.uid {
		return named, nil
	}
	return a, nil
}

// look checks whether a client would be let in now, as logging in does. What holds for the whole
// account comes first: it does not depend on what the holder says. Only nologin(5) is not looked
// at: as with sshd, it keeps new logins out and ends none.
func (s *Monitor) look(ctx context.Context, r right) error {
	a, err := s.lookup(ctx, r.admission)
	if errors.Is(err, account.ErrUnknown) {
		return fmt.Errorf("user id %d: %w", r.uid, errMissing)
	}
	if err != nil {
		return err
	}
	switch err := checkExpired(a); {
	case errors.Is(err, errExpired):
		return &privsep.Withdrawn{Reason: err.Error(), Account: true}
	case err != nil:
		return err
	}
	switch _, err := s.policy(ctx, a, r.from, r.at); {
	case errors.Is(err, sshd.ErrRefused):
		return &privsep.Withdrawn{Reason: err.Error(), Account: true}
	case err != nil:
		return err
	case a.Name != r.account:
		return &privsep.Withdrawn{Reason: fmt.Sprintf("the account of user id %d is %s now", a.UID, a.Name)}
	case r.key == "":
		allowed, err := s.tokenPermissions(ctx, a, r.from, r.at)
		switch {
		case errors.Is(err, sshd.ErrRefused):
			return &privsep.Withdrawn{Reason: err.Error()}
		case err == nil && r.less(allowed):
			return &privsep.Withdrawn{Reason: "a login by a token is allowed less than before"}
		}
		return err
	}
	key, err := auth.ParseUserKey([]byte(r.key))
	if err != nil {
		return &privsep.Withdrawn{Reason: err.Error()}
	}
	decided, err := s.authorize(ctx, claim{account: a, from: r.from, at: r.at, proven: r.proven}, []byte(r.key))
	if err != nil {
		return err
	}
	name := ssh.FingerprintSHA256(auth.PlainKey(key))
	allowed, refused := decided.verdicts[0].Allowed, decided.verdicts[0].Refused
	switch {
	case errors.Is(refused, keyfile.ErrUnread):
		return refused
	case allowed == nil:
		return &privsep.Withdrawn{Reason: fmt.Sprintf("%s: %v", name, refused)}
	case r.less(allowed):
		return &privsep.Withdrawn{Reason: name + " is allowed less than before"}
	}
	return nil
}

// less reports whether permissions are less than those that let the client in.
func (a admission) less(allowed *auth.Permissions) bool {
	return allowed.Command != "" && a.scope == "" || allowed.NoPTY && !a.noPTY
}
