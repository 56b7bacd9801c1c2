//go:build (linux && !android) || darwin

package reach

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/quicterm/quicterm/quicterm/machine/rundir"
)

// daemonRuns reports whether a daemon has a socket for our account.
func daemonRuns() bool {
	base := rundir.Base("")
	return slices.ContainsFunc(append(base.Dirs(uint32(os.Geteuid())), base.System()), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, rundir.DaemonSocket))
		return err == nil
	})
}
