//go:build linux || darwin

package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"log/slog"
	"math/big"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe in the place of the certificate holds nobody up.
func TestWebCertificateIsPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "cert.pem")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	w := NewWeb(pipe, pipe, slog.New(slog.DiscardHandler))
	if w.Read() || w.Chain() != nil {
		t.Error("a pipe is a certificate")
	}
}

// The page's name is the first of its certificate that is one host's.
func TestWebName(t *testing.T) {
	if name := (*Web)(nil).Name(); name != "" {
		t.Errorf("the name is %q without a certificate", name)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for want, names := range map[string][]string{"": {"*.example"}, "b.example": {"*.example", "b.example", "c.example"}} {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names}
		certificate, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
		if err != nil {
			t.Fatal(err)
		}
		if name := (&Web{chain: [][]byte{certificate}}).Name(); name != want {
			t.Errorf("of %v the name is %q, want %q", names, name, want)
		}
	}
}
