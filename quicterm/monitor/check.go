//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/doctor"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/pam"
	"github.com/quicterm/quicterm/quicterm/machine/sshd"
	"github.com/quicterm/quicterm/quicterm/monitor/access"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An Access is what a daemon would decide about a login now.
type Access struct {
	Account *account.Account
	Refused error              // why the account does not get in, or nil
	SSHD    *sshd.Installation // whose configuration is obeyed, or nil
	Rules   []sshd.Rule        // that are in force, or not used, as far as they are known
	Login   string             // how a session starts
	Key     *KeyAccess         // nil if no key was asked for
}

// A KeyAccess is what a daemon would decide about a key.
type KeyAccess struct {
	Fingerprint string
	auth.Verdict
}

// Check returns what a daemon with these settings decides about a login to an account (without a name, this
// process's) from an address, with a key if there is one: the content of a file with a public key or a certificate.
// It asks as the daemon does: processes that read keys, sshd -T and the program of AuthorizedKeysCommand run, the
// directory that sshd -T needs is made if it does not exist, and PAM opens a session and closes it. Only root can ask
// about other accounts. An error says that nothing is known.
func Check(ctx context.Context, cfg Config, user string, from netip.Addr, key []byte) (*Access, error) {
	s, err := look(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer s.access.Close()
	a := s.self
	if user != "" {
		if a, err = s.names.Lookup(ctx, user); err != nil {
			return nil, fmt.Errorf("account %s: %w", user, err)
		}
	}
	if !s.serves(a.UID) {
		return nil, fmt.Errorf("account %s: only root can ask about another account than %s", a.Name, s.self.Name)
	}
	at := netip.IPv6Loopback()
	if from.Unmap().Is4() {
		at = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	policy, installed, err := s.access.Find(ctx, a, from, at)
	if err != nil {
		return nil, err
	}
	found := &Access{Account: a, SSHD: installed, Rules: policy.Rules()}
	su, words, state := processes.HowSessionsStart(ctx, s.all, nil)
	found.Login = words
	if found.Refused = s.access.Admit(ctx, a, from, at); found.Refused == nil && state == doctor.Fail {
		found.Refused = errors.New(words)
	}
	if err := access.CheckExpired(a); err != nil {
		found.Refused = err
	}
	if closed := nologin(s.all, a.UID); closed != nil && found.Refused == nil {
		found.Refused = errors.New("logins are forbidden now: " + closed.Text)
	}
	if su != "" && found.Refused == nil {
		found.Refused = pam.Check(ctx, su, a.Name)
	}
	if key == nil {
		return found, nil
	}
	parsed, _, _, _, err := ssh.ParseAuthorizedKey(key)
	if err != nil {
		return nil, fmt.Errorf("not a public key or certificate: %w", err)
	}
	found.Key = &KeyAccess{Fingerprint: parsed.Type() + " " + ssh.FingerprintSHA256(auth.PlainKey(parsed))}
	if found.Key.Verdict, err = s.access.Key(ctx, a, from, at, parsed.Marshal()); err != nil {
		found.Key.Refused = err
	}
	if refused := found.Key.Refused; refused != nil { // the account may have made names in it
		found.Key.Refused = errors.New(wire.Printable(refused.Error(), maxShown))
	}
	found.Key.Where = wire.Printable(found.Key.Where, maxShown)
	return found, nil
}

// maxShown bounds a text about a key, in bytes.
const maxShown = 2000
