//go:build linux || darwin

package quicterm_test

import (
	"os"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
)

// TestMain makes the program of the tests and examples a holder or a reader of keys if a server starts it
// as one.
func TestMain(m *testing.M) {
	holdertest.Child()
	if status, ok := rig.WithoutStartupFiles(); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}
