package sshlogin

import (
	"os"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// emptyVariable tells the tests that root's startup files are empty.
const emptyVariable = "QUICTERM_SSHLOGIN_EMPTY"

// TestMain runs the tests where the shell that sshd starts has no startup files of root.
func TestMain(m *testing.M) {
	if os.Getenv(emptyVariable) == "" {
		if status, ok := rig.WithoutStartupFiles(emptyVariable + "=1"); ok {
			os.Exit(status)
		}
	}
	os.Exit(m.Run())
}
