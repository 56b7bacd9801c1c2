//go:build linux || darwin

package monitor

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The log names what let a client in: also a certificate, and what is known of a login by ssh, whichever
// daemon the client comes back to.
func TestCredential(t *testing.T) {
	key, authority := newUserKey(t), newAuthority(t)
	cert := &ssh.Certificate{Key: key, CertType: ssh.UserCert, KeyId: "anna\x1b@corp", Serial: 7}
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	print := ssh.FingerprintSHA256(key)
	for _, test := range []struct {
		c    privsep.Credential
		want string
	}{
		{privsep.KeyCredential(key.Marshal()), "proof=" + print},
		{privsep.KeyCredential(cert.Marshal()), "proof=" + print + " certificate=anna?@corp serial=7 ca=" + ssh.FingerprintSHA256(authority.PublicKey())},
		{privsep.KeyCredential([]byte("no key")), "proof=SHA256:oZncjM5U2FOML7ng9B5o5agmvi+y6V/OZUzup347MDk"},
		{privsep.CredentialOf(&wire.Resumed{Key: key.Marshal(), Proof: privsep.ProofSSH, Reported: "password"}), "proof=" + print},
		{privsep.CredentialOf(&wire.Resumed{Proof: privsep.ProofSSH, Reported: "password"}), "proof=ssh reported=password"},
		{privsep.CredentialOf(&wire.Resumed{Proof: "SHA256:made up"}), "proof=token"},
	} {
		var text bytes.Buffer
		test.c.On(slog.New(slog.NewTextHandler(&text, nil))).Info("x")
		if got := strings.TrimSpace(text.String()); !strings.HasSuffix(got, " msg=x "+test.want) {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}
