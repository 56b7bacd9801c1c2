//go:build linux || darwin

package monitor

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The next daemon has the secrets of the last one, unless that has ended orderly after they were old.
func TestSecretsRotate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets")
	load := func() *secrets {
		t.Helper()
		s, err := loadSecrets(file)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := load()
	if err := first.retire(time.Now()); err != nil {
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
	if err := first.retire(time.Now()); err != nil {
		t.Fatal(err)
	}
	if next := load(); next.reset == first.reset || next.addressToken == first.addressToken {
		t.Error("they are the same after an orderly end")
	}
}
