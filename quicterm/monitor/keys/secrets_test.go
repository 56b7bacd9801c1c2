//go:build linux || darwin

package keys

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The next daemon has the secrets of the last one, unless that has ended orderly after they were old.
func TestSecretsRotate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets")
	load := func() *Secrets {
		t.Helper()
		s, err := LoadSecrets(file)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := load()
	if err := first.Retire(time.Now()); err != nil {
		t.Fatal(err)
	}
	if *load() != *first {
		t.Error("they change before they are old")
	}
	old := time.Now().Add(-secretsAge)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if *load() != *first {
		t.Error("they change at a start: clients of a daemon that was killed wait for a reset")
	}
	if err := first.Retire(time.Now()); err != nil {
		t.Fatal(err)
	}
	if next := load(); next.Reset == first.Reset || next.AddressToken == first.AddressToken {
		t.Error("they are the same after an orderly end")
	}
}
