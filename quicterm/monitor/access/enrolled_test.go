//go:build linux || darwin

package access

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/sshd"
)

// An enrolled key gets in only where sshd lets a key in alone, and as long as it has not revoked the one that has enrolled
// it, or refuses keys of that type.
func TestPolicyOfEnrolled(t *testing.T) {
	key := func(n byte) ssh.PublicKey {
		public, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(append(make([]byte, 31), n)).Public())
		if err != nil {
			t.Fatal(err)
		}
		return public
	}
	device, issuer := key(1), key(2)
	revoked := filepath.Join(t.TempDir(), "revoked")
	if err := os.WriteFile(revoked, ssh.MarshalAuthorizedKey(issuer), 0o600); err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		"":                        "",
		"revokedkeys " + revoked:  "the key that has enrolled it: refused as by sshd: RevokedKeys",
		"pubkeyauthentication no": "PubkeyAuthentication no",
		"authenticationmethods publickey,password":     "AuthenticationMethods publickey,password",
		"authenticationmethods publickey":              "",
		"pubkeyacceptedalgorithms ecdsa-sha2-nistp256": "PubkeyAcceptedAlgorithms",
	} {
		policy, err := sshd.Parse([]byte("port 22\npermitrootlogin yes\npubkeyauthentication yes\nauthorizedkeysfile x\n" + settings))
		if err != nil {
			t.Fatal(err)
		}
		allowed := &auth.Permissions{Enrolled: &auth.Enrolled{Kind: auth.KindDevice, By: issuer.Marshal()}}
		got, err := obey(policy, 1000, device.Marshal(), auth.Verdict{Allowed: allowed})
		if want == "" && (err != nil || got.Enrolled == nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %+v, %v", settings, got, err)
		}
	}
}
