//go:build linux || darwin

package monitor

import (
	"crypto/ed25519"
	"crypto/rand"
	"os"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
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

// When a certificate was proven is known to the holder, which tells it to each daemon that its client comes back to.
func TestProvenAt(t *testing.T) {
	onHost(t, func(h *host) {
		cert := &ssh.Certificate{Key: newUserKey(t), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
		if err := cert.SignCert(rand.Reader, newAuthority(t)); err != nil {
			t.Fatal(err)
		}
		by := h.by()
		before := time.Now()
		time.Sleep(time.Second)
		open := func(key string) *wire.Open {
			h.server.logins.byID[by.Login].Key = key
			c, err := h.server.changing(by)
			if err != nil {
				t.Fatal(err)
			}
			return c.open()
		}
		if o := open(string(cert.Key.Marshal())); o.Proven != 0 {
			t.Errorf("a plain key was proven at %d", o.Proven)
		}
		told := open(string(cert.Marshal()))
		if told.Proven != before.Unix() {
			t.Errorf("proven at %d, want %d", told.Proven, before.Unix())
		}
		for _, test := range []struct {
			told int64
			want time.Time
		}{{told.Proven, time.Unix(before.Unix(), 0)}, {0, time.Time{}}, {-1, time.Time{}}} {
			answer, err := wire.New(&wire.Resumed{Account: told.Account, Key: told.Key, Proven: test.told})
			if err != nil {
				t.Fatal(err)
			}
			r, err := h.server.resumed(t.Context(), new(privsep.Resume), &wire.Resume{UID: uint32(os.Geteuid())}, answer, nil)
			if err != nil {
				t.Fatal(err)
			}
			p, err := h.server.logins.get(r.Login.ID)
			if err != nil || !p.at.Equal(test.want) {
				t.Errorf("proven at %v, %v; want %v", p.at, err, test.want)
			}
		}
	})
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
