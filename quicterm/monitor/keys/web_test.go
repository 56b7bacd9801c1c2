//go:build linux || darwin

package keys

import (
	"log/slog"
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
