//go:build linux || darwin

package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
)

// ListenHTTP opens a socket for TCP, without Multipath TCP, or for a setting that begins with [configs.UnixPrefix].
func ListenHTTP(address string) (net.Listener, error) {
	path, ok := strings.CutPrefix(address, configs.UnixPrefix)
	if !ok {
		var lc net.ListenConfig
		lc.SetMultipathTCP(false)
		return lc.Listen(context.Background(), "tcp", address)
	}
	// Who can write to the directory could make it another file whose mode is changed.
	dir, err := rundir.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	l, err := ListenSocket(path)
	if err != nil {
		return nil, err
	}
	// As at a loopback address, every account may read what has no names.
	if err := os.Chmod(path, 0o666); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// ListenSocket makes a unix socket for this account alone, in the place of one that an earlier daemon
// has left. Its directory must be of this account or of root.
func ListenSocket(path string) (*net.UnixListener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%s is no socket", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return rundir.Listen(path)
}
