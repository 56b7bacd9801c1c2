//go:build linux || darwin

package sshlogin

import (
	"os"
	"testing"

	_ "github.com/quicterm/quicterm/bench/bubble"
	"github.com/quicterm/quicterm/bench/rig"
)

// TestMain runs the tests where the shell that sshd starts has no startup files of root.
func TestMain(m *testing.M) {
	if status, ok := rig.WithoutStartupFiles(); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}
