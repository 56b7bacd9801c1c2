//go:build linux || darwin

package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/keyfile"
	"github.com/quicterm/quicterm/quicterm/machine/sshd"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/quota"
)

// missingTime is for how long an account must not be found before that counts: the name service says the same if it
// cannot reach the directory of a company.
const missingTime = privsep.RetryInterval

// An Admission is what let a client in: an account, and what one of its keys was allowed. There
// is no key if a token let it in. Of a client that resumes all except UID is what the holder says,
// which the account may have made: the name says only which of several accounts with this uid.
type Admission struct {
	UID     uint32
	Account string
	Key     string // RFC 4253, 6.6
	Scope   string // see wire.Open
	NoPTY   bool
}

// IsWithdrawn reports whether an error says that a client has lost its access.
func IsWithdrawn(err error) bool {
	var w *privsep.Withdrawn
	return errors.As(err, &w)
}

// Rights says which logins still let their clients in. It keeps the results of checks for a while. It is safe for
// concurrent use.
type Rights struct {
	Look func(context.Context, Right) error // checks a right; may take seconds

	withdrawn *withdrawals

	mu      sync.Mutex
	results quota.Recent[Right, *result]
	missing quota.Recent[uint32, time.Time] // since when an account is not found; zero if it was found since
}

// A Right is an admission that is used from an address, at an address of the daemon.
type Right struct {
	Admission
	From, At netip.Addr

	// Proven is when the client has proven that it has the certificate with which it has logged
	// in. It is zero for a plain key or a token, and if another daemon has served that login.
	Proven time.Time
}

// A result is that of a check, which may be under way.
type result struct {
	done chan struct{} // closed when the check has ended
	at   time.Time     // of its start
	err  error
}

// NewRights returns rights that are checked by look. Without a file, they are forgotten with the daemon.
func NewRights(look func(context.Context, Right) error) *Rights {
	return &Rights{Look: look, withdrawn: new(withdrawals)}
}

// Load makes the rights keep in a file which of them were withdrawn, after it has read what the last daemon has kept
// there.
func (r *Rights) Load(file string, log *slog.Logger) { r.withdrawn = loadWithdrawals(file, log) }

// Check returns nil if a right still lets its client in, or did at most privsep.RightTime ago. It blocks until that is
// known or ctx ends. Concurrent checks of one right share one look.
func (r *Rights) Check(ctx context.Context, key Right) error {
	for {
		r.mu.Lock()
		known, _ := r.results.Get(key)
		first := known == nil || known.ended() && (time.Since(known.at) >= privsep.RightTime || known.err != nil)
		if first {
			known = &result{done: make(chan struct{}), at: time.Now()}
			r.results.Put(key, known)
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

func (r *Rights) fill(ctx context.Context, key Right, known *result) (err error) {
	err = errors.New("the check has panicked") // which ends only the connection that makes it
	defer func() {
		defer close(known.done)
		r.mu.Lock()
		err = r.confirmLocked(key.UID, err)
		r.mu.Unlock()
		known.err = err
		r.record(key, err)
	}()
	return r.Look(ctx, key)
}

// record keeps what a check of a right has told.
func (r *Rights) record(key Right, err error) {
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

// confirmLocked turns the error of an account that is not found into a withdrawal after missingTime. It returns
// other errors as they are.
func (r *Rights) confirmLocked(uid uint32, err error) error {
	since, _ := r.missing.Get(uid)
	if !errors.Is(err, errMissing) {
		if !since.IsZero() && (err == nil || IsWithdrawn(err)) {
			r.missing.Put(uid, time.Time{})
		}
		return err
	}
	if since.IsZero() {
		since = time.Now()
		r.missing.Put(uid, since)
	}
	if time.Since(since) >= missingTime {
		return &privsep.Withdrawn{
			Reason: fmt.Sprintf("the account of user id %d does not exist any more", uid), Account: true,
		}
	}
	return err
}

// Refused checks a right at once if the last check of the same admission, or of its whole account, has withdrawn it,
// from any address, and returns why it is refused. Otherwise it returns nil without a check: the client continues, and
// is checked soon.
func (r *Rights) Refused(ctx context.Context, key Right) error {
	if !r.withdrawn.has(key) {
		return nil
	}
	if err := r.Check(ctx, key); IsWithdrawn(err) {
		return err
	}
	return nil
}

// errMissing is the error of an account that the name service does not find.
var errMissing = errors.New("account is not found")

// lookup returns the account with the user id of an admission: of several, the one that the holder names.
func (d *Decider) lookup(ctx context.Context, by Admission) (*account.Account, error) {
	a, err := d.names.LookupID(ctx, by.UID)
	if err != nil || a.Name == by.Account {
		return a, err
	}
	if named, err := d.names.Lookup(ctx, by.Account); err == nil && named.UID == by.UID {
		return named, nil
	}
	return a, nil
}

// Look checks whether a client would be let in now, as logging in does. What holds for the whole
// account comes first: it does not depend on what the holder says. Only nologin(5) is not looked
// at: as with sshd, it keeps new logins out and ends none.
func (d *Decider) Look(ctx context.Context, r Right) error {
	ctx = account.WithSource(ctx, fmt.Sprint("check of user id ", r.UID)) // no login of the account delays it
	a, err := d.lookup(ctx, r.Admission)
	if errors.Is(err, account.ErrUnknown) {
		return fmt.Errorf("user id %d: %w", r.UID, errMissing)
	}
	if err != nil {
		return err
	}
	switch err := CheckExpired(a); {
	case errors.Is(err, ErrExpired):
		return &privsep.Withdrawn{Reason: err.Error(), Account: true}
	case err != nil:
		return err
	}
	policy, err := d.policy(ctx, a, r.From, r.At)
	switch {
	case errors.Is(err, sshd.ErrRefused):
		return &privsep.Withdrawn{Reason: err.Error(), Account: true}
	case err != nil:
		return err
	case a.Name != r.Account:
		return &privsep.Withdrawn{Reason: fmt.Sprintf("the account of user id %d is %s now", a.UID, a.Name)}
	}
	var allowed *auth.Permissions
	name := "a login by a token"
	if r.Key == "" {
		allowed, err = byToken(policy, a.UID)
	} else {
		name = privsep.Fingerprint([]byte(r.Key))
		by, keys := claim{account: a, from: r.From, at: r.At, proven: r.Proven, check: true}, [][]byte{[]byte(r.Key)}
		read, unread := d.readKeys(ctx, by, &policy.Sources, keys)
		v := d.decide(ctx, by, policy, keys, read, unread)[0]
		allowed, err = v.Allowed, v.Refused
	}
	switch {
	case errors.Is(err, keyfile.ErrUnread):
		return err
	case err != nil:
		return &privsep.Withdrawn{Reason: fmt.Sprintf("%s: %v", name, err)}
	case r.less(allowed):
		return &privsep.Withdrawn{Reason: name + " is allowed less than before"}
	}
	return nil
}

// less reports whether permissions are less than those that let the client in.
func (a Admission) less(allowed *auth.Permissions) bool {
	return allowed.Command != "" && a.Scope == "" || allowed.NoPTY && !a.NoPTY
}
