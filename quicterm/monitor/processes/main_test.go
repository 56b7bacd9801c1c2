//go:build linux || darwin

package processes

import (
	"os"
	"testing"

	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
)

// TestMain makes the test's executable a holder if a test starts it as one.
func TestMain(m *testing.M) {
	holdertest.Child()
	os.Exit(m.Run())
}
