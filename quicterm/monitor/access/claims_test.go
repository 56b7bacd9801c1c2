//go:build linux || darwin

package access

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"log/slog"
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
	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/machine/sshd"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// refusing returns a decider that follows a fake sshd with a setting besides the usual ones,
// and that cannot read the keys of its account.
func refusing(t *testing.T, setting string) (*Decider, *account.Account) {
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
	d := New(names, true, panics.New(), slog.New(slog.DiscardHandler))
	d.sshd.Files = []string{program}
	if err := d.Adopt(configs.DefaultServer()); err != nil {
		t.Fatal(err)
	}
	d.Close()
	return d, self
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
	denied, self := refusing(t, "denyusers SELF")
	allowed, _ := refusing(t, "")
	local := netip.MustParseAddr("127.0.0.1")
	for _, name := range []string{self.Name, "made-up-name", "a b", ""} {
		for _, key := range []string{"", "nonsense", string(newUserKey(t).Marshal())} {
			r := Right{Admission: Admission{UID: self.UID, Account: name, Key: key}, From: local, At: local}
			var w *privsep.Withdrawn
			if err := denied.Look(t.Context(), r); !errors.As(err, &w) || !w.Account || !strings.Contains(err.Error(), "DenyUsers") {
				t.Errorf("account %q, key %.8q: %v", name, key, err)
			}
			err := allowed.Look(t.Context(), r)
			if refused := name != self.Name || key == "nonsense"; IsWithdrawn(err) != refused {
				t.Errorf("account %q, key %.8q, and sshd lets the account in: %v", name, key, err)
			}
		}
	}
}

// An account that was refused is checked before it is let in again, whatever its holder says.
func TestRefusedForAllClaims(t *testing.T) {
	j := new(judge)
	r := NewRights(j.look)
	claim := func(uid uint32, name string) Right { return Right{Admission: Admission{UID: uid, Account: name}} }
	j.says(&privsep.Withdrawn{Reason: "DenyUsers", Account: true})
	if err := r.Check(t.Context(), claim(1, "ann")); !IsWithdrawn(err) {
		t.Fatal(err)
	}
	if err := r.Refused(t.Context(), claim(1, "made-up")); !IsWithdrawn(err) {
		t.Errorf("another claim: %v", err)
	}
	if err := r.Refused(t.Context(), claim(2, "bob")); err != nil {
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
		d, self := refusing(t, setting)
		r := Right{Admission: Admission{UID: self.UID, Account: self.Name, Key: string(key.Marshal())}, From: local, At: local}
		if err := d.Look(t.Context(), r); err == nil || IsWithdrawn(err) != want {
			t.Errorf("%q, the files cannot be read: %v", setting, err)
		}
		policy, err := d.policy(t.Context(), self, local, local)
		if err != nil {
			t.Fatal(err)
		}
		_, err = obey(policy, self.UID, key.Marshal(), auth.Verdict{Refused: keyfile.ErrUnread})
		if errors.Is(err, sshd.ErrRefused) != want || errors.Is(err, keyfile.ErrUnread) == want {
			t.Errorf("%q, one of the files was not read: %v", setting, err)
		}
	}
}

// While the list of revoked keys cannot be read, no key logs in, and none loses its access but one
// that is in no file any more.
func TestRevokedKeysUnread(t *testing.T) {
	d, self := refusing(t, "revokedkeys /none")
	key, local := newUserKey(t), netip.MustParseAddr("127.0.0.1")
	policy, err := d.policy(t.Context(), self, local, local)
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
		allowed, err := obey(policy, self.UID, key.Marshal(), test.file)
		if allowed != nil || err == nil || errors.Is(err, keyfile.ErrUnread) != test.unread {
			t.Errorf("%s: %v, %v", test.why, allowed, err)
		}
	}
}

// That there is no such account takes as long as a refusal by sshd: it is asked all the same.
func TestNoAccountAsksSSHD(t *testing.T) {
	d, _ := refusing(t, "")
	asked := d.sshd.Files[0] + ".asked"
	script, err := os.ReadFile(d.sshd.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	script = bytes.Replace(script, []byte("exec "), []byte("echo \"$*\" > "+asked+"\nexec "), 1)
	if err := os.WriteFile(d.sshd.Files[0], script, 0o700); err != nil {
		t.Fatal(err)
	}
	local := netip.MustParseAddrPort("127.0.0.1:1")
	o := &privsep.Offer{User: "nobody-here", Keys: [][]byte{newUserKey(t).Marshal()}, Path: privsep.Path{Client: local, Server: local}}
	verdicts, err := d.Judge(t.Context(), nil, o)
	if err != nil || len(verdicts) != 1 || verdicts[0].Allowed != nil || verdicts[0].Refused == nil {
		t.Errorf("%+v, %v", verdicts, err)
	}
	if args, err := os.ReadFile(asked); err != nil || !strings.Contains(string(args), "user=nobody-here,") {
		t.Errorf("sshd was asked %q, %v", args, err)
	}
	o.Sealed = d.Seal(o, []auth.Verdict{{Allowed: new(auth.Permissions)}}) // while there was such an account
	if _, err := d.Allowed(t.Context(), nil, o, 0); err == nil {
		t.Error("an account that is gone lets a key in")
	}
}
