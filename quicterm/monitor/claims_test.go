//go:build linux || darwin

package monitor

import (
	"crypto/ed25519"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/keyfile"
	"github.com/quicterm/quicterm/quicterm/machine/sshd"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// refusingServer returns a server that follows a fake sshd with a setting besides the usual ones,
// and that cannot read the keys of its account.
func refusingServer(t *testing.T, setting string) *Monitor {
	t.Helper()
	names := new(account.NameService)
	self, err := names.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "sshd")
	script := "#!/bin/sh\nexec /bin/cat <<END\n" + strings.ReplaceAll(setting, "SELF", self.Name) + `
port 22
usepam yes
permitrootlogin yes
pubkeyauthentication yes
authorizedkeysfile /none
END
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &Monitor{names: names, self: self, all: true, keyFiles: keyfile.NewReader(names)}
	s.adopt(configs.DefaultServer())
	s.sshd.Files = []string{program}
	s.keyFiles.Close()
	return s
}

func newUserKey(t *testing.T) ssh.PublicKey {
	t.Helper()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The daemon finds the account of a client that resumes by its user id: no name or key that its
// holder makes up evades what refuses the account.
func TestHolderLies(t *testing.T) {
	denied, allowed := refusingServer(t, "denyusers SELF"), refusingServer(t, "")
	local, self := netip.MustParseAddr("127.0.0.1"), denied.self
	for _, name := range []string{self.Name, "made-up-name", "a b", ""} {
		for _, key := range []string{"", "nonsense", string(newUserKey(t).Marshal())} {
			r := right{admission: admission{uid: self.UID, account: name, key: key}, from: local, at: local}
			var w *privsep.Withdrawn
			if err := denied.look(t.Context(), r); !errors.As(err, &w) || !w.Account || !strings.Contains(err.Error(), "DenyUsers") {
				t.Errorf("account %q, key %.8q: %v", name, key, err)
			}
			err := allowed.look(t.Context(), r)
			if refused := name != self.Name || key == "nonsense"; withdrawn(err) != refused {
				t.Errorf("account %q, key %.8q, and sshd lets the account in: %v", name, key, err)
			}
		}
	}
}

// An account that was refused is checked before it is let in again, whatever its holder says.
func TestRefusedForAllClaims(t *testing.T) {
	j := new(judge)
	r := newRights(j.look)
	claim := func(uid uint32, name string) right { return right{admission: admission{uid: uid, account: name}} }
	j.says(&privsep.Withdrawn{Reason: "DenyUsers", Account: true})
	if err := r.check(t.Context(), claim(1, "ann")); !withdrawn(err) {
		t.Fatal(err)
	}
	if err := r.refused(t.Context(), claim(1, "made-up")); !withdrawn(err) {
		t.Errorf("another claim: %v", err)
	}
	if err := r.refused(t.Context(), claim(2, "bob")); err != nil {
		t.Errorf("another account: %v", err)
	}
}

// A key that sshd's settings refuse is refused also while the account's files cannot be read, which
// the account itself can bring about.
func TestRefusedKeyUnread(t *testing.T) {
	key, local := newUserKey(t), netip.MustParseAddr("127.0.0.1")
	revoked := filepath.Join(t.TempDir(), "revoked")
	if err := os.WriteFile(revoked, ssh.MarshalAuthorizedKey(key), 0o600); err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]bool{
		"pubkeyacceptedalgorithms ssh-rsa": true, "revokedkeys " + revoked: true, "": false,
	} {
		s := refusingServer(t, setting)
		r := right{admission: admission{uid: s.self.UID, account: s.self.Name, key: string(key.Marshal())}, from: local, at: local}
		if err := s.look(t.Context(), r); err == nil || withdrawn(err) != want {
			t.Errorf("%q, the files cannot be read: %v", setting, err)
		}
		policy, err := s.policy(t.Context(), s.self, local, local)
		if err != nil {
			t.Fatal(err)
		}
		_, err = obey(policy, s.self.UID, key.Marshal(), auth.Verdict{Refused: keyfile.ErrUnread})
		if errors.Is(err, sshd.ErrRefused) != want || errors.Is(err, keyfile.ErrUnread) == want {
			t.Errorf("%q, one of the files was not read: %v", setting, err)
		}
	}
}

// While the list of revoked keys cannot be read, no key logs in, and none loses its access but one
// that is in no file any more.
func TestRevokedKeysUnread(t *testing.T) {
	s, key, local := refusingServer(t, "revokedkeys /none"), newUserKey(t), netip.MustParseAddr("127.0.0.1")
	policy, err := s.policy(t.Context(), s.self, local, local)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		why    string
		file   auth.Verdict
		unread bool
	}{
		{"allowed", auth.Verdict{Allowed: new(auth.Permissions)}, true},
		{"removed", auth.Verdict{Refused: auth.ErrNotAuthorized}, false},
		{"not read", auth.Verdict{Refused: keyfile.ErrUnread}, true},
	} {
		allowed, err := obey(policy, s.self.UID, key.Marshal(), test.file)
		if allowed != nil || err == nil || errors.Is(err, keyfile.ErrUnread) != test.unread {
			t.Errorf("%s: %v, %v", test.why, allowed, err)
		}
	}
}
