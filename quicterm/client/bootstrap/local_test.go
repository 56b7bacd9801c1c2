//go:build unix

package bootstrap

import (
	"crypto/ed25519"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	_ "github.com/quicterm/quicterm/bench/bubble"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// When another daemon has taken over, its grant brings its own address and key.
func TestAnotherDaemon(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(dir, "qtd"), []byte("#!/bin/sh\nexec cat "+dir+"/grant\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	grant := func(address string) ssh.PublicKey {
		t.Helper()
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		key, err := ssh.NewPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		line, err := Line(&wire.Grant{Address: address, HostKey: key.Marshal(), Token: []byte("token")})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "grant"), []byte(line), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	synctest.Test(t, func(t *testing.T) {
		mine := grant("127.0.0.1:1000")
		access, err := NewLocal(t.Context(), nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		access.Resolve(t.Context())
		roots := grant("127.0.0.1:4433")
		time.Sleep(2 * askInterval)
		addrs, err := access.Resolve(t.Context())
		if err != nil || len(addrs) != 1 || addrs[0].Port() != 4433 {
			t.Errorf("resolved to %v, %v; want the new address", addrs, err)
		}
		if err := access.CheckHost(roots); err != nil {
			t.Errorf("the key of the new grant: %v", err)
		}
		if access.CheckHost(mine) == nil {
			t.Error("the key of the old grant is accepted at the new address")
		}
	})
}
