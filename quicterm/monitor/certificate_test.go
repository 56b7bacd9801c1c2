//go:build linux || darwin

package monitor

import (
	"crypto/ed25519"
	"crypto/rand"
	"os"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/monitor/access"
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

// When a certificate was proven is known to the next daemon, for the attachment and the key that it
// was, and for no other.
func TestProvenAt(t *testing.T) {
	onHost(t, func(h *host) {
		cert := &ssh.Certificate{Key: newUserKey(t), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
		if err := cert.SignCert(rand.Reader, newAuthority(t)); err != nil {
			t.Fatal(err)
		}
		by := h.by()
		h.server.logins.byID[by.Login].Key = string(cert.Marshal())
		request := h.request(&wire.Attach{PTY: true, Instance: wire.InstanceID{1}})
		request.By = *by
		before := time.Now()
		time.Sleep(time.Second)
		a, err := h.server.Attach(h.t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Carrier.Close()
		next, err := New(Config{Settings: h.settings, Granted: true, Holders: h.holders})
		if err != nil {
			t.Fatal(err)
		}
		defer next.access.Close()
		id := attachmentID{a.ID, request.Instance}
		uid, key := uint32(os.Geteuid()), string(cert.Marshal())
		if got := next.attached.At(id.hash(uid, key)); !got.Equal(before) {
			t.Errorf("proven at %v, want %v", got, before)
		}
		for _, other := range []access.Admission{{UID: uid, Key: "another"}, {UID: uid + 1, Key: key}} {
			if got := next.attached.At(id.hash(other.UID, other.Key)); !got.IsZero() {
				t.Errorf("%+v is proven at %v", other, got)
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
