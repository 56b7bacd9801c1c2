//go:build linux || darwin

package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/keyfile"
	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/machine/sshd"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Decider decides which accounts get in, and what it allows their keys. It is safe for concurrent use.
type Decider struct {
	all      bool // every account is served, not only that of this process
	names    *account.NameService
	keyFiles *keyfile.Reader
	sshd     sshd.Daemon
	panics   *panics.Container
	log      *slog.Logger

	rules   atomic.Pointer[rules]
	sources atomic.Pointer[sshd.Sources] // at the last login
	sealer  sealer
}

// rules are what the settings say.
type rules struct {
	own     *sshd.Policy
	follows bool // see FollowsSSHD
	// replaced is why the own policy has no effect beside an sshd that is followed, or nil if it says nothing. An sshd may
	// be installed while the daemon runs.
	replaced error
}

// New returns a decider, which Adopt gives its settings. all says whether the daemon serves every account. Close ends
// the processes that it has started.
func New(names *account.NameService, all bool, panics *panics.Container, log *slog.Logger) *Decider {
	return &Decider{
		all: all, names: names, keyFiles: keyfile.NewReader(names), panics: panics, log: log, sealer: newSealer(),
	}
}

// Close ends the processes that read keys.
func (d *Decider) Close() { d.keyFiles.Close() }

// Adopt makes the decider use settings. If there is a mistake in them, it continues with the last ones.
func (d *Decider) Adopt(settings *configs.Server) error {
	own, err := ownPolicy(settings)
	if err != nil {
		return err
	}
	r := &rules{own: own, follows: d.all && settings.SSHDPolicy == "follow"}
	if r.follows {
		if r.replaced = replaced(settings); r.replaced != nil && d.sshd.Installed() {
			return r.replaced
		}
	}
	d.rules.Store(r)
	return nil
}

// policy returns what sshd's configuration, or the daemon's settings where no sshd is followed, allow an account, for
// a client at one address and the daemon at another. An error that wraps sshd.ErrRefused says that the account does
// not get in; any other one, that this cannot be known now.
//
// A login by a token has a policy too, although sshd or the system's own login has let the process in that got the
// token: the rules for an account hold whatever way it takes. The rules for how it proves who it is
// (PubkeyAuthentication, AuthenticationMethods) do not: they were for that login.
func (d *Decider) policy(ctx context.Context, a *account.Account, client, server netip.Addr) (*sshd.Policy, error) {
	login := d.loginOf(ctx, a, client, server)
	r := d.rules.Load()
	switch {
	case r.replaced != nil && d.sshd.Installed():
		return nil, r.replaced
	case r.follows:
		return d.sshd.Ask(ctx, login, r.own)
	}
	return r.own, r.own.Admit(ctx, login, client.Unmap().WithZone("").String())
}

// FollowsSSHD reports whether the daemon obeys sshd's configuration.
func (d *Decider) FollowsSSHD() bool { return d.rules.Load().follows }

// Admit returns why an account does not get in, whatever its keys are, or nil. The errors are those of policy.
func (d *Decider) Admit(ctx context.Context, a *account.Account, client, server netip.Addr) error {
	_, err := d.policy(ctx, a, client, server)
	return err
}

// Find returns the policy by which Admit decides, and the sshd that it is of, or nil if it is the daemon's own.
func (d *Decider) Find(
	ctx context.Context, a *account.Account, client, server netip.Addr,
) (*sshd.Policy, *sshd.Installation, error) {
	r := d.rules.Load()
	if !r.follows {
		return r.own, nil, nil
	}
	installed, err := d.sshd.Locate()
	if err != nil {
		return nil, nil, fmt.Errorf("sshd: %w", err)
	}
	policy, _, err := d.sshd.Find(ctx, d.loginOf(ctx, a, client, server), r.own)
	return policy, installed, err
}

// Key returns what an account allows a key or a certificate of a client. An error says nothing about the key.
func (d *Decider) Key(
	ctx context.Context, a *account.Account, client, server netip.Addr, blob []byte,
) (auth.Verdict, error) {
	decided, err := d.authorize(ctx, claim{account: a, from: client, at: server}, blob)
	if err != nil {
		return auth.Verdict{}, err
	}
	return decided.verdicts[0], nil
}

func (d *Decider) loginOf(ctx context.Context, a *account.Account, client, server netip.Addr) *sshd.Login {
	return &sshd.Login{
		User: a.Name, UID: a.UID, Shell: a.Shell, Client: client, Server: server, Source: account.SourceOf(ctx),
		Locked: a.Locked,
		Groups: func(ctx context.Context) ([]string, error) { return d.names.GroupNames(ctx, a) },
	}
}

// A claim is that of a client to log in to an account.
type claim struct {
	account *account.Account
	from    netip.Addr // of the client
	at      netip.Addr // of the daemon
	proven  time.Time  // see auth.Query
	tried   int        // keys of the client that were refused before
	check   bool       // the client is logged in
}

// A decision is what is decided about the keys of a client.
type decision struct {
	verdicts []auth.Verdict // in the order of the keys
	tries    int            // how many keys the client may try in vain
}

// authorize decides what an account allows the keys of a client now: by the settings, sshd's
// configuration, and the sources of keys that these name. An error says nothing about the keys (see
// keyfile.Reader), as a refusal that wraps keyfile.ErrUnread.
//
// It asks for policy and keys at once, because each takes a process. The sources are
// nearly always those of the last login; otherwise they are read again.
func (d *Decider) authorize(ctx context.Context, by claim, keys ...[]byte) (*decision, error) {
	type result struct {
		verdicts []auth.Verdict
		err      error
	}
	sources := d.sources.Load()
	if sources == nil {
		sources = &d.rules.Load().own.Sources
	}
	early := make(chan result, 1)
	reading, stop := context.WithCancel(ctx)
	go func() {
		var r result
		r.err = d.panics.Contain(d.log, func() (err error) {
			r.verdicts, err = d.readKeys(reading, by, sources, keys)
			return err
		})
		early <- r
	}()
	policy, err := d.policy(ctx, by.account, by.from, by.at)
	if err != nil {
		stop()
	}
	read := <-early
	stop()
	switch {
	case errors.Is(err, sshd.ErrRefused):
		return &decision{slices.Repeat([]auth.Verdict{{Refused: err}}, len(keys)), math.MaxInt}, nil
	case err != nil:
		return nil, err
	}
	if !sources.SameFiles(&policy.Sources) {
		d.sources.Store(&policy.Sources)
		read.verdicts, read.err = d.readKeys(ctx, by, &policy.Sources, keys)
	}
	return &decision{d.decide(ctx, by, policy, keys, read.verdicts, read.err), policy.MaxTries()}, nil
}

// decide returns what a policy allows keys, after what its files do, or why they could not be read.
func (d *Decider) decide(
	ctx context.Context, by claim, policy *sshd.Policy, keys [][]byte, read []auth.Verdict, err error,
) []auth.Verdict {
	if err != nil { // it takes nothing from what the policy refuses
		read = slices.Repeat([]auth.Verdict{{Refused: fmt.Errorf("%w: %w", keyfile.ErrUnread, err)}}, len(keys))
	}
	d.askProgram(ctx, by, policy, keys, read)
	for i := range read {
		read[i].Allowed, read[i].Refused = obey(policy, by.account.UID, keys[i], read[i])
	}
	return read
}

// TokenPermissions returns what an account is allowed that logs in with a token. The error is that of policy.
func (d *Decider) TokenPermissions(
	ctx context.Context, a *account.Account, client, server netip.Addr,
) (*auth.Permissions, error) {
	ctx = account.WithSource(ctx, fmt.Sprint("user id ", a.UID)) // whatever addresses its processes report
	policy, err := d.policy(ctx, a, client, server)
	if err != nil {
		return nil, err
	}
	return byToken(policy, a.UID)
}

func byToken(policy *sshd.Policy, uid uint32) (*auth.Permissions, error) {
	if err := policy.AcceptCommand(uid, ""); err != nil {
		return nil, err
	}
	return policy.Restrict(new(auth.Permissions)), nil
}

// obey returns what is left of what a source allows a key, and why it is nothing. A refusal by the
// policy comes first: the account itself can make its files unreadable, which is no definite one.
// That the policy is not known comes last.
func obey(policy *sshd.Policy, uid uint32, blob []byte, v auth.Verdict) (*auth.Permissions, error) {
	key, err := auth.ParseUserKey(blob)
	if err != nil {
		return nil, err
	}
	unknown := policy.AcceptKey(key)
	if v.Allowed != nil && v.Allowed.Enrolled != nil && len(v.Allowed.Enrolled.By) > 0 {
		by, err := auth.ParseUserKey(v.Allowed.Enrolled.By)
		if err != nil {
			return nil, err
		}
		if err := policy.AcceptKey(by); err != nil && !errors.Is(unknown, sshd.ErrRefused) {
			unknown = fmt.Errorf("the key that has enrolled it: %w", err)
		}
	}
	if errors.Is(unknown, sshd.ErrRefused) {
		return nil, unknown
	}
	if v.Allowed == nil {
		return nil, v.Refused
	}
	if err := policy.AcceptCommand(uid, v.Allowed.Command); err != nil {
		return nil, err
	}
	if unknown != nil {
		return nil, fmt.Errorf("%w: %w", keyfile.ErrUnread, unknown)
	}
	return policy.Restrict(v.Allowed), nil
}

// Judge returns what an account allows the keys of an Offer. It refuses the keys after too many that are refused, as
// sshd does not look at them. If there is no account, sshd is asked all the same, so that the time does not tell.
func (d *Decider) Judge(ctx context.Context, a *account.Account, o *privsep.Offer) ([]auth.Verdict, error) {
	if len(o.Keys) > wire.MaxKeys {
		return nil, fmt.Errorf("offer of %d keys, at most %d are accepted", len(o.Keys), wire.MaxKeys)
	}
	if o.Path.Hidden() { // a key, or sshd, may have rules about it
		return slices.Repeat([]auth.Verdict{{Refused: errHidden}}, len(o.Keys)), nil
	}
	if a == nil {
		if r := d.rules.Load(); r.follows {
			d.sshd.Find(ctx, d.loginOf(ctx, &account.Account{Name: o.User}, o.Path.From(), o.Path.At()), r.own)
		}
		return slices.Repeat([]auth.Verdict{{Refused: account.ErrUnknown}}, len(o.Keys)), ctx.Err()
	}
	decided, err := d.authorize(ctx, claim{account: a, from: o.Path.From(), at: o.Path.At(), tried: o.Earlier}, o.Keys...)
	if err != nil {
		return nil, err
	}
	tried := o.Earlier
	for i, v := range decided.verdicts {
		if v.Allowed != nil && tried >= decided.tries {
			decided.verdicts[i] = auth.Verdict{Refused: fmt.Errorf("%d keys before it are refused: MaxAuthTries", tried)}
		} else if v.Allowed == nil {
			tried++
		}
	}
	return decided.verdicts, nil
}

// Seal seals the verdicts about an Offer.
func (d *Decider) Seal(o *privsep.Offer, verdicts []auth.Verdict) []byte {
	return d.sealer.seal(o, verdicts)
}

// Allowed returns what an account, or nil, allows a key of an Offer: as was sealed a moment ago, or as Judge says now.
// The error says why the key is refused, or that nothing is known.
func (d *Decider) Allowed(
	ctx context.Context, a *account.Account, o *privsep.Offer, key int,
) (allowed *auth.Permissions, err error) {
	if sealed := d.sealer.open(o); sealed != nil {
		if a == nil || sealed[key] == nil { // sshd and key files are not asked again for each try of a stranger
			return nil, errRefused
		}
		return sealed[key], nil
	}
	verdicts, err := d.Judge(ctx, a, o)
	if err != nil {
		return nil, err
	}
	return verdicts[key].Allowed, verdicts[key].Refused
}

var (
	errRefused = errors.New("the key was refused a moment ago")
	errHidden  = errors.New("a proxy does not tell the client's address: see the setting web_proxy")
)

// ErrExpired is the error of an account whose expiration date has passed.
var ErrExpired = errors.New("account has expired")

// CheckExpired returns nil if an account has not expired. An error other than ErrExpired says that
// this cannot be known now.
func CheckExpired(a *account.Account) error {
	expired, err := a.Expired(time.Now())
	if expired {
		err = ErrExpired
	}
	if err != nil {
		return fmt.Errorf("account %s: %w", a.Name, err)
	}
	return nil
}
