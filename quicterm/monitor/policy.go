//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/keyfile"
	"github.com/quicterm/quicterm/quicterm/machine/sshd"
)

// CheckSettings returns a mistake in the rules for logins, as a [configs.Wrong]: one that sshd would refuse, a pattern that
// nothing can match, or a setting that has no effect beside an sshd whose configuration is obeyed. granted says
// whether they are for a granted daemon, which serves only its own account.
func CheckSettings(s *configs.Server, granted bool) error {
	if _, err := ownPolicy(s); err != nil {
		return err
	}
	if os.Geteuid() != 0 || granted {
		return nil
	}
	return checkReplaced(s, new(sshd.Daemon))
}

// checkReplaced returns the error of a setting that has no effect because sshd's takes its place, if there is one.
func checkReplaced(s *configs.Server, daemon *sshd.Daemon) error {
	if s.SSHDPolicy != "follow" {
		return nil
	}
	given, usual := reflect.ValueOf(s).Elem(), reflect.ValueOf(configs.DefaultServer()).Elem()
	for i := range given.NumField() {
		key := given.Type().Field(i).Tag.Get("toml")
		item := sshd.Replaced(key)
		if item != "" && !reflect.DeepEqual(given.Field(i).Interface(), usual.Field(i).Interface()) && daemon.Installed() {
			return &configs.Wrong{Key: key, Element: -1, Err: fmt.Errorf(
				`%s has no effect: sshd's %s takes its place; remove it, or set sshd_policy = "ignore"`, key, item)}
		}
	}
	return nil
}

// ownPolicy returns the policy of the daemon's own settings. The error of a mistake is a [configs.Wrong].
func ownPolicy(s *configs.Server) (*sshd.Policy, error) {
	var settings []sshd.Setting
	for _, list := range []struct {
		keyword string
		values  []string
	}{
		{"allowusers", s.AllowUsers},
		{"allowgroups", s.AllowGroups},
		{"authorizedkeysfile", s.AuthorizedKeysFiles},
	} {
		for _, value := range list.values {
			settings = append(settings, sshd.Setting{Keyword: list.keyword, Value: value})
		}
	}
	lists := len(settings)
	settings = append(settings, sshd.Setting{Keyword: "trustedusercakeys", Value: s.TrustedUserCAKeys})
	policy, err := sshd.Own(settings)
	if mistake, ok := errors.AsType[*sshd.SettingError](err); ok {
		wrong := &configs.Wrong{Key: sshd.OwnName(settings[mistake.Index].Keyword), Element: -1, Err: err}
		if mistake.Index < lists { // an element of a list
			wrong.Element = mistake.Index - slices.IndexFunc(settings, func(s sshd.Setting) bool {
				return s.Keyword == settings[mistake.Index].Keyword
			})
		}
		return nil, wrong
	}
	return policy, err
}

// policy returns what sshd's configuration, or the daemon's settings where no sshd is followed,
// allow an account, for a client at an address of a server at another. An error that wraps
// sshd.ErrRefused says that the account does not get in; any other one, that this cannot be
// known now.
//
// A login by a token has a policy too, although sshd or the system's own login has let the
// process in that got the token: the rules for an account hold whatever way it takes. The
// rules for how it proves who it is (PubkeyAuthentication, AuthenticationMethods) do not:
// they were for that login.
func (s *Monitor) policy(ctx context.Context, a *account.Account, client, server netip.Addr) (*sshd.Policy, error) {
	login := s.loginOf(a, client, server)
	if s.followsSSHD() {
		return s.sshd.Ask(ctx, login, s.own.Load())
	}
	own := s.own.Load()
	return own, own.Admit(ctx, login, client.Unmap().WithZone("").String())
}

// followsSSHD reports whether the daemon obeys sshd's configuration.
func (s *Monitor) followsSSHD() bool { return s.all && s.settings().SSHDPolicy == "follow" }

// loginOf describes a login to a policy.
func (s *Monitor) loginOf(a *account.Account, client, server netip.Addr) *sshd.Login {
	return &sshd.Login{
		User: a.Name, UID: a.UID, Shell: a.Shell, Client: client, Server: server,
		Locked: a.Locked,
		Groups: func(ctx context.Context) ([]string, error) { return s.names.GroupNames(ctx, a) },
	}
}

// A claim is that of a client to log in to an account.
type claim struct {
	account *account.Account
	from    netip.Addr // of the client
	at      netip.Addr // of the server
	proven  time.Time  // see auth.Query
	tried   int        // keys of the client that were refused before
}

// valid returns when the certificates of the claim must be valid.
func (by claim) valid() time.Time {
	if by.proven.IsZero() {
		return time.Now()
	}
	return by.proven
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
func (s *Monitor) authorize(ctx context.Context, by claim, keys ...[]byte) (*decision, error) {
	type result struct {
		verdicts []auth.Verdict
		err      error
	}
	sources := s.keySources.Load()
	if sources == nil {
		sources = &s.own.Load().Sources
	}
	early := make(chan result, 1)
	reading, stop := context.WithCancel(ctx)
	go func() {
		var r result
		r.err = s.contain(s.log, func() (err error) {
			r.verdicts, err = s.readKeys(reading, by, sources, keys)
			return err
		})
		early <- r
	}()
	policy, err := s.policy(ctx, by.account, by.from, by.at)
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
		s.keySources.Store(&policy.Sources)
		read.verdicts, read.err = s.readKeys(ctx, by, &policy.Sources, keys)
	}
	if read.err != nil { // it takes nothing from what the policy refuses
		unread := fmt.Errorf("%w: %w", keyfile.ErrUnread, read.err)
		read.verdicts = slices.Repeat([]auth.Verdict{{Refused: unread}}, len(keys))
	}
	s.askPrincipals(ctx, by, policy, keys, read.verdicts)
	s.askProgram(ctx, by, policy, keys, read.verdicts)
	d := &decision{make([]auth.Verdict, len(keys)), policy.MaxTries()}
	for i, v := range read.verdicts {
		v.Allowed, v.Refused = obey(policy, by.account.UID, keys[i], v)
		d.verdicts[i] = v
	}
	return d, nil
}

// tokenPermissions returns what an account is allowed that logs in with a token. The error is
// that of policy.
func (s *Monitor) tokenPermissions(
	ctx context.Context, a *account.Account, client, server netip.Addr,
) (*auth.Permissions, error) {
	policy, err := s.policy(ctx, a, client, server)
	if err != nil {
		return new(auth.Permissions), err
	}
	if err := policy.AcceptCommand(a.UID, ""); err != nil {
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
