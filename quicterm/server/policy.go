//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quicterm/quicterm/quicterm/account"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/keyfile"
	"github.com/quicterm/quicterm/quicterm/sshd"
)

// policy returns what sshd's configuration allows an account, for a client at an address of a
// server at another. It is nil if this daemon does not follow sshd. An error that wraps
// sshd.ErrRefused says that the account does not get in; any other one, that this cannot be
// known now.
//
// A login by a token has a policy too, although sshd or the system's own login has let the
// process in that got the token: the rules for an account hold whatever way it takes. The
// rules for how it proves who it is (PubkeyAuthentication, AuthenticationMethods) do not:
// they were for that login.
func (s *Server) policy(ctx context.Context, a *account.Account, client, server netip.Addr) (*sshd.Policy, error) {
	if !s.all || s.settings().SSHDPolicy != "follow" {
		return nil, nil
	}
	return s.sshd.Ask(ctx, &sshd.Login{
		User: a.Name, UID: a.UID, Shell: a.Shell, Client: client, Server: server,
		Locked: a.Locked,
		Groups: func(ctx context.Context) ([]string, error) { return s.names.GroupNames(ctx, a) },
	})
}

// authorize returns what sshd's configuration and the authorized_keys files of an account
// allow keys, for a client at an address of a server at another, now. An error says nothing
// about the keys (see keyfile.Reader), as a refusal that wraps keyfile.ErrUnread.
//
// It asks for both at once, because each takes a process. The files that sshd names are
// nearly always those that it named for the last login; otherwise they are read again.
func (s *Server) authorize(
	ctx context.Context, a *account.Account, client, server netip.Addr, keys ...[]byte,
) ([]auth.Verdict, error) {
	type result struct {
		verdicts []auth.Verdict
		err      error
	}
	patterns := s.settings().AuthorizedKeysFiles
	if last := s.keyPatterns.Load(); last != nil {
		patterns = *last
	}
	early := make(chan result, 1)
	reading, stop := context.WithCancel(ctx)
	go func() {
		var r result
		r.err = s.contain(s.log, func() (err error) {
			r.verdicts, err = s.readKeys(reading, a, patterns, client, keys)
			return err
		})
		early <- r
	}()
	policy, err := s.policy(ctx, a, client, server)
	if err != nil {
		stop()
	}
	read := <-early
	stop()
	switch {
	case errors.Is(err, sshd.ErrRefused):
		return slices.Repeat([]auth.Verdict{{Refused: err}}, len(keys)), nil
	case err != nil:
		return nil, err
	}
	allowed := s.settings().AuthorizedKeysFiles
	if policy != nil {
		allowed = policy.AuthorizedKeysFiles
	}
	if !slices.Equal(patterns, allowed) {
		s.keyPatterns.Store(&allowed)
		read.verdicts, read.err = s.readKeys(ctx, a, allowed, client, keys)
	}
	if policy == nil {
		return read.verdicts, read.err
	}
	if read.err != nil { // it takes nothing from what the policy refuses
		unread := fmt.Errorf("%w: %w", keyfile.ErrUnread, read.err)
		read.verdicts = slices.Repeat([]auth.Verdict{{Refused: unread}}, len(keys))
	}
	verdicts := make([]auth.Verdict, len(keys))
	for i, v := range read.verdicts {
		verdicts[i].Allowed, verdicts[i].Refused = obey(policy, a.UID, keys[i], v)
	}
	return verdicts, nil
}

// tokenPermissions returns what an account is allowed that logs in with a token. The error is
// that of policy.
func (s *Server) tokenPermissions(
	ctx context.Context, a *account.Account, client, server netip.Addr,
) (*auth.Permissions, error) {
	policy, err := s.policy(ctx, a, client, server)
	if err != nil || policy == nil {
		return new(auth.Permissions), err
	}
	if err := policy.AcceptCommand(a.UID, ""); err != nil {
		return nil, err
	}
	return restrict(policy, new(auth.Permissions)), nil
}

// obey returns what is left of what a file allows a key, and why it is nothing. A refusal by the
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
	if v.Allowed == nil && policy.KeysCommand {
		return nil, fmt.Errorf("%w (sshd also gets keys from AuthorizedKeysCommand, which is not supported)", v.Refused)
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
	return restrict(policy, v.Allowed), nil
}

// restrict returns permissions with those of the policy.
func restrict(policy *sshd.Policy, allowed *auth.Permissions) *auth.Permissions {
	restricted := *allowed
	if policy.Command != "" {
		restricted.Command = policy.Command
	}
	restricted.NoPTY = restricted.NoPTY || policy.NoPTY
	restricted.Verified = restricted.Verified || policy.Verified
	return &restricted
}

// readKeys returns what the authorized_keys files of an account allow keys. Patterns are those
// of sshd_config(5).
func (s *Server) readKeys(
	ctx context.Context, a *account.Account, patterns []string, client netip.Addr, keys [][]byte,
) ([]auth.Verdict, error) {
	uid := strconv.FormatUint(uint64(a.UID), 10)
	var files []string
	for _, pattern := range patterns {
		file := strings.NewReplacer("%%", "%", "%h", a.Home, "%u", a.Name, "%U", uid).Replace(pattern)
		if !filepath.IsAbs(file) {
			file = filepath.Join(a.Home, file)
		}
		files = append(files, file)
	}
	return s.keyFiles.Authorize(ctx, a, files, client, keys...)
}
