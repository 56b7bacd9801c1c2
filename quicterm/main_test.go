//go:build linux || darwin

package quicterm_test

import (
	"log"
	"log/slog"
	"os"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/keyfile"
)

// A server starts the holder of a session by executing its own program with the argument
// [holder.Command], and a reader of authorized_keys files with [keyfile.Command].
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == keyfile.Command {
		if err := keyfile.Main(); err != nil {
			log.Fatal(err)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == holder.Command {
		if err := holder.Main(slog.New(slog.DiscardHandler), "test"); err != nil {
			log.Fatal(err)
		}
		return
	}
	if status, ok := rig.WithoutStartupFiles(); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}
