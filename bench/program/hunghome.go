//go:build linux

package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/topology"
)

// Stranger is an account of every Linux system that belongs to nobody, and StrangerUID its
// number.
const (
	Stranger    = "nobody"
	StrangerUID = 65534
)

// HungHome is Quicterm on a machine where the directory with the keys of Stranger is a file
// system that does not answer. It needs root.
type HungHome struct{ Quicterm }

func (q HungHome) Serve(t *measure.T, on topology.Topology) Server {
	h := on.Host()
	homes := h.Path("homes")
	hung := filepath.Join(homes, Stranger)
	h.Write("homes/root/keys", h.Read("authorized_keys"))
	for _, err := range []error{
		os.Mkdir(hung, 0o700),
		os.Chmod(h.Dir, 0o711), // the account gets through
		os.Chmod(homes, 0o711),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h.Settings["authorized_keys_files"] = fmt.Sprintf("[%q]", homes+"/%u/keys")
	h.In = hungHome{rig.NewHungFS(t), hung}
	return q.Quicterm.Serve(t, on)
}

// A hungHome makes the daemon's processes find a file system at a directory that does not
// answer.
type hungHome struct {
	fs  *rig.HungFS
	dir string
}

func (h hungHome) In(cmd *exec.Cmd) *exec.Cmd { return h.fs.In(h.dir, cmd) }
