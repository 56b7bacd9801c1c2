//go:build linux || darwin

package server

import (
	"os"
	"testing"

	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
)

// TestMain makes the test's executable a holder or a reader of keys if a daemon starts it
// as one.
func TestMain(m *testing.M) {
	holdertest.Child()
	os.Exit(m.Run())
}

// reachableDir returns a directory that other accounts can enter, with room for the name
// of a socket.
func reachableDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "qt")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
