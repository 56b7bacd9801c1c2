//go:build linux || darwin

package server

import (
	"log/slog"
	"os"
	"testing"

	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/keyfile"
)

// TestMain makes the test's executable a holder or a reader of keys if a daemon starts it
// as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == keyfile.Command {
		if err := keyfile.Main(); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == holder.Command {
		if err := holder.Main(slog.New(slog.DiscardHandler), "test"); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
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
