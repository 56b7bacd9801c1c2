//go:build linux || darwin

package bootstrap

import (
	"crypto/ed25519"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// What sshd says of a login is reported as sshd logs it, and bounded.
func TestSSHLogin(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key := signer.PublicKey()
	cert := &ssh.Certificate{Key: key, CertType: ssh.UserCert, KeyId: "anna", Serial: 7}
	if err := cert.SignCert(rand.Reader, signer); err != nil {
		t.Fatal(err)
	}
	line := func(key ssh.PublicKey) string { return "publickey " + string(ssh.MarshalAuthorizedKey(key)) }
	print := ssh.FingerprintSHA256(key)
	file := filepath.Join(t.TempDir(), "auth")
	t.Setenv("SSH_USER_AUTH", file)
	t.Setenv("SSH_CONNECTION", "192.0.2.1 1000 192.0.2.2 22")
	for _, test := range []struct{ list, want string }{
		{"password\n", "password"},
		{line(key), "publickey " + print},
		{line(cert) + "keyboard-interactive/pam\n", "publickey " + print + " ID anna (serial 7) CA " + print + ", keyboard-interactive/pam"},
		{"publickey no key\x1b[2J\n\n", "publickey"},
		{"", ""},
	} {
		if err := os.WriteFile(file, []byte(test.list), 0o600); err != nil {
			t.Fatal(err)
		}
		want := sshLogin{"192.0.2.1:1000", "192.0.2.2:22", test.want}
		if got := currentLogin(); got != want {
			t.Errorf("%q: got %q, want %q", test.list, got, want)
		}
	}
	if got := describeMethods(strings.Repeat("password\n", 1000)); len(got) > wire.MaxSummary {
		t.Errorf("%d bytes", len(got))
	}
	os.Remove(file)
	t.Setenv("SSH_CONNECTION", "")
	if got := currentLogin(); got != (sshLogin{}) {
		t.Errorf("not by ssh: got %q", got)
	}
}
