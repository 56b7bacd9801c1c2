//go:build linux || darwin

package monitor

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// grantVar makes the test's executable ask for a grant at a socket.
const grantVar = "QUICTERM_TEST_GRANT"

// TestMain makes the test's executable a holder or a reader of keys if a daemon starts it
// as one.
func TestMain(m *testing.M) {
	if path := os.Getenv(grantVar); path != "" {
		askForGrant(path)
		os.Exit(0)
	}
	holdertest.Child()
	os.Exit(m.Run())
}

func askForGrant(path string) {
	c, err := net.Dial("unix", path)
	if err != nil {
		fmt.Println(err)
		return
	}
	c.SetDeadline(time.Now().Add(20 * time.Second))
	wire.Send(c, &wire.Ask{}) // a daemon that has closed the connection has answered already
	m, err := wire.Read(c, wire.MaxMessage)
	if err != nil {
		fmt.Println(err)
		return
	}
	failed := new(wire.Error)
	if m.Decode(failed) == nil {
		fmt.Println("refused:", failed.Text)
		return
	}
	fmt.Println("granted")
}
