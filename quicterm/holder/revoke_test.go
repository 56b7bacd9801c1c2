//go:build linux || darwin

package holder

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"testing"
	"testing/synctest"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// revoke sends a Revoke, and returns how many clients have lost access.
func (w *world) revoke(req *wire.Revoke) uint32 {
	w.t.Helper()
	m, _ := w.ask(&wire.Open{Client: "ann@phone"}, req)
	var revoked wire.Revoked
	w.want("revoke", m, &revoked)
	return revoked.Clients
}

// The fingerprint of a key revokes the certificates of it as well.
func TestRevokedCertificate(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert := &ssh.Certificate{Key: signer.PublicKey(), CertType: ssh.UserCert}
	if err := cert.SignCert(rand.Reader, signer); err != nil {
		t.Fatal(err)
	}
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		w.attach("a@x")
		w.locked(func(h *Holder) { h.clients.writer().login.Key = cert.Marshal() })
		sum := sha256.Sum256(signer.PublicKey().Marshal())
		if n := w.revoke(&wire.Revoke{Key: sum[:]}); n != 1 {
			t.Errorf("%d clients have lost access, want 1", n)
		}
	})
}

// A client whose key is revoked loses its carriers at once, and is told why when it
// comes back. The session is kept for the next one.
func TestRevokedClient(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		key := []byte("a public key")
		w.locked(func(h *Holder) { h.clients.writer().login.Key = key })
		other := sha256.Sum256([]byte("another key"))
		if n := w.revoke(&wire.Revoke{Key: other[:]}); n != 0 {
			t.Errorf("another key: %d clients have lost access", n)
		}
		sum := sha256.Sum256(key)
		if n := w.revoke(&wire.Revoke{Key: sum[:]}); n != 1 {
			t.Errorf("%d clients have lost access, want 1", n)
		}
		a.awaitEnd()
		w.wantPhase("revoked", wire.PhaseDetached, 0)
		for range 2 {
			m, _ := w.ask(&wire.Open{}, a.statement())
			var refusal wire.Error
			w.want("resume", m, &refusal)
			if refusal.Code != wire.CodeWithdrawn || refusal.Text != "ann@phone has revoked it" {
				t.Errorf("refused with %+v", refusal)
			}
		}
		if n := w.revoke(&wire.Revoke{All: true}); n != 0 {
			t.Errorf("%d clients have lost access twice", n)
		}
		for range maxLost + 2 { // they are forgotten like displaced ones
			w.attach("b@x")
			if n := w.revoke(&wire.Revoke{All: true}); n != 1 {
				t.Errorf("%d clients have lost access, want 1", n)
			}
		}
		m, _ := w.ask(&wire.Open{}, a.statement())
		w.want("long ago", m, &wire.Denied{})
	})
}

// A client that a token let in has no key.
func TestRevokeOfNoKey(t *testing.T) {
	inBubble(t, wire.Launch{}, func(w *world) {
		a := w.attach("a@x")
		none := sha256.Sum256(nil)
		if n := w.revoke(&wire.Revoke{Key: none[:]}); n != 0 {
			t.Errorf("%d clients have lost access", n)
		}
		if n := w.revoke(&wire.Revoke{All: true}); n != 1 {
			t.Errorf("%d clients have lost access, want 1", n)
		}
		a.awaitEnd()
		if len(w.program.Signals()) == 0 {
			t.Error("a pipe that nobody can attach to was not hung up")
		}
		w.program.End(0)
		synctest.Wait()
		m, _ := w.ask(&wire.Open{}, a.statement())
		var refusal wire.Error
		w.want("resume of a pipe that has ended meanwhile", m, &refusal)
		if refusal.Code != wire.CodeWithdrawn {
			t.Errorf("refused with %+v", refusal)
		}
		w.locked(func(h *Holder) {
			if !h.life.over {
				t.Error("the session is kept, but its client was told")
			}
		})
	})
}
