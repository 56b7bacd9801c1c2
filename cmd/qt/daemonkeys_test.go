package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
)

// The key of a daemon takes the place of the one at the same port, and a bounded number is kept.
func TestDaemonKeys(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var keys []ssh.PublicKey
	for range 2 {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		key, err := ssh.NewPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	at := func(alias string, port uint16) *target {
		return &target{Host: &sshconfig.Host{User: "me", Alias: alias}, daemonPort: port}
	}
	keep := func(to *target, key ssh.PublicKey) {
		t.Helper()
		if err := keepDaemonKey(to, key); err != nil {
			t.Fatal(err)
		}
	}
	want := func(to *target, key ssh.PublicKey, known bool) {
		t.Helper()
		if err := knownDaemon(to, key); (err == nil) != known {
			t.Errorf("%s, port %d: %v, want a known key: %t", to.Alias, to.daemonPort, err, known)
		}
	}
	want(at("host", 60000), keys[0], false)
	keep(at("Host", 60000), keys[0])
	keep(at("::1", 60000), keys[0])
	keep(at("host", 22), keys[0])
	want(at("host", 60000), keys[0], true)
	want(at("::1", 60000), keys[0], true)
	want(at("host", 22), keys[0], true)
	want(&target{Host: &sshconfig.Host{User: "root", Alias: "host"}, daemonPort: 60000}, keys[0], false)
	want(at("host", 60000), keys[1], false)
	want(at("other", 60000), keys[0], false)
	keep(at("host", 60000), keys[1])
	want(at("host", 60000), keys[0], false)
	want(at("host", 60000), keys[1], true)
	want(at("::1", 60000), keys[0], true)

	var wg sync.WaitGroup
	for part := range uint16(4) { // clients that write at once lose nothing
		wg.Go(func() {
			for port := range uint16(maxDaemonKeys) / 4 {
				if err := keepDaemonKey(at("many", 4*port+part+1), keys[0]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for port := range uint16(maxDaemonKeys) {
		want(at("many", port+1), keys[0], true)
	}
	want(at("host", 60000), keys[1], false)
}
