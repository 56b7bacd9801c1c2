//go:build linux || darwin

package sshd

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func line(key ssh.PublicKey) string { return string(ssh.MarshalAuthorizedKey(key)) }

// A file is read again when it has changed, and all keys are refused if it cannot be read.
func TestRevokedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "revoked")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	revoked, other := ed25519Key(t), ed25519Key(t)
	var r revokedFiles
	write(line(revoked))
	for i, key := range []ssh.PublicKey{revoked, other} {
		if got, err := r.has([]string{file}, key); err != nil || got != (i == 0) {
			t.Errorf("key %d: %v, %v", i, got, err)
		}
	}
	write(line(other))
	if err := os.Chtimes(file, time.Time{}, time.Unix(1, 0)); err != nil { // two changes may fall into one tick of the clock
		t.Fatal(err)
	}
	if got, err := r.has([]string{file}, other); err != nil || !got {
		t.Errorf("after a change: %v, %v", got, err)
	}
	write("this is no key\n")
	if _, err := r.has([]string{file}, other); err == nil {
		t.Error("a file with something else than keys revokes nothing")
	}
	if _, err := r.has([]string{filepath.Join(t.TempDir(), "none")}, other); err == nil {
		t.Error("a missing file revokes nothing")
	}
	lost := filepath.Join(t.TempDir(), "lost")
	if err := os.WriteFile(lost, []byte(line(revoked)), 0o600); err != nil {
		t.Fatal(err)
	}
	write(line(other))
	for i, key := range []ssh.PublicKey{revoked, other, ed25519Key(t)} {
		got, err := parse(t, "revokedkeys "+file+" "+lost).AcceptKey(key), error(nil)
		if i < 2 {
			err = ErrRefused
		}
		if !errors.Is(got, err) {
			t.Errorf("key %d of two files: %v, want %v", i, got, err)
		}
	}
	if got, err := r.has([]string{"/none", lost}, revoked); err != nil || !got {
		t.Errorf("a revoked key beside a missing file: %v, %v", got, err)
	}
}
