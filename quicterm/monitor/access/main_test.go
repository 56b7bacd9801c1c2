//go:build linux || darwin

package access

import (
	"fmt"
	"os"
	"testing"

	"github.com/quicterm/quicterm/quicterm/machine/keyfile"
)

// TestMain makes the test's executable a reader of keys if a Decider starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == keyfile.Command {
		if err := keyfile.Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
