//go:build linux || darwin

package holdertest

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/machine/keyfile"
)

// Child makes this process what a daemon starts its own executable as, a holder or a reader of keys, and does not
// return then. It is for the TestMain of tests with daemons.
func Child() {
	if len(os.Args) < 2 {
		return
	}
	var err error
	switch os.Args[1] {
	case keyfile.Command:
		err = keyfile.Main()
	case spawn.Command:
		err = holder.Main(slog.New(slog.DiscardHandler), "test", "")
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
