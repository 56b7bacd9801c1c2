//go:build linux || darwin

package access

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/keyfile"
	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/machine/sshd"

	"golang.org/x/crypto/ssh"
)

// newAuthority returns an authority for certificates.
func newAuthority(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// obeying returns a decider that obeys lines of what sshd -T prints.
func obeying(t *testing.T, names *account.NameService, lines ...string) *Decider {
	t.Helper()
	policy, err := sshd.Parse([]byte("port 22\npermitrootlogin yes\npubkeyauthentication yes\n" + strings.Join(lines, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	d := New(names, false, panics.New(), slog.New(slog.DiscardHandler))
	t.Cleanup(d.Close)
	d.rules.Store(&rules{own: policy})
	return d
}

// A client keeps its access when the certificate expires with which it has logged in to this daemon,
// and loses it when the certificate or its authority is not trusted any more.
func TestCertificateExpires(t *testing.T) {
	authority := newAuthority(t)
	names := new(account.NameService)
	self, err := names.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now, dir := time.Now(), t.TempDir()
	cert := &ssh.Certificate{
		Key: newUserKey(t), CertType: ssh.UserCert, ValidPrincipals: []string{self.Name},
		ValidBefore: uint64(now.Add(-time.Hour).Unix()),
		Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": ""}},
	}
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	keys, revoked := filepath.Join(dir, "keys"), filepath.Join(dir, "revoked")
	d := obeying(t, names, "authorizedkeysfile "+keys, "revokedkeys "+revoked, "strictmodes no")
	write := func(file, content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trusted := "cert-authority " + string(ssh.MarshalAuthorizedKey(authority.PublicKey()))
	local := netip.MustParseAddr("127.0.0.1")
	for _, test := range []struct {
		why, keys, revoked string
		proven             time.Time
		want               string
	}{
		{"another daemon has served the login", trusted, "", time.Time{}, "expired"},
		{"proven while it was valid", trusted, "", now.Add(-2 * time.Hour), ""},
		{"proven afterwards", trusted, "", now, "expired"},
		{"the authority is gone", "", "", now.Add(-2 * time.Hour), "authority"},
		{"revoked", trusted, string(ssh.MarshalAuthorizedKey(cert)), now.Add(-2 * time.Hour), "RevokedKeys"},
	} {
		write(keys, test.keys)
		write(revoked, test.revoked)
		r := Right{
			Admission: Admission{UID: self.UID, Account: self.Name, Key: string(cert.Marshal())},
			From:      local, At: local, Proven: test.proven,
		}
		err := d.Look(t.Context(), r)
		if (err != nil) != (test.want != "") || err != nil && (!IsWithdrawn(err) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.why, err, test.want)
		}
	}
}

// A program that names keys in its arguments is not asked about more than a client may try in vain, and
// one that fails allows nothing.
func TestProgramIsAskedSeldom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: the program belongs to root")
	}
	names := new(account.NameService)
	self, err := names.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := obeying(t, names, "authorizedkeysfile none", "maxauthtries 3", "authorizedkeyscommand /bin/false %f", "authorizedkeyscommanduser %u")
	keys := make([][]byte, 5)
	for i := range keys {
		keys[i] = newUserKey(t).Marshal()
	}
	local := netip.MustParseAddr("127.0.0.1")
	decided, err := s.authorize(t.Context(), claim{account: self, from: local, at: local, tried: 1}, keys...)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range decided.verdicts {
		if asked := errors.Is(v.Refused, keyfile.ErrProgram); asked != (i < 2) || errors.Is(v.Refused, keyfile.ErrUnread) {
			t.Errorf("key %d: %v", i, v.Refused)
		}
		if !errors.Is(v.Refused, auth.ErrNotAuthorized) {
			t.Errorf("key %d: %v", i, v.Refused)
		}
	}
}
