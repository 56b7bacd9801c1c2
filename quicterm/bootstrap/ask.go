//go:build linux || darwin

package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Ask asks the daemon of this machine that serves our account for a grant. If no daemon
// serves it, Ask calls start, which starts one for our account alone and returns when
// that listens, and asks that one. base is the setting runtime_dir.
func Ask(base string, start func() error) (*wire.Grant, error) {
	b := rundir.Base(base)
	uid := uint32(os.Geteuid())
	grant, err := askDaemon(b, uid)
	if !errors.Is(err, errNoDaemon) {
		return grant, err
	}
	dir, err := b.Make()
	if err != nil {
		return nil, fmt.Errorf("directory for sockets: %w", err)
	}
	// If several processes find no daemon, one starts it and the others wait.
	f, err := os.OpenFile(filepath.Join(dir, "grant.lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	if grant, err = askDaemon(b, uid); !errors.Is(err, errNoDaemon) {
		return grant, err
	}
	if err := start(); err != nil {
		return nil, err
	}
	return askDaemon(b, uid)
}

// errNoDaemon is the error of a grant if no daemon of this machine serves the account.
var errNoDaemon = errors.New("no daemon is running")

// askTimeout bounds how long a daemon may take to answer.
const askTimeout = 5 * time.Second

// askDaemon asks root's daemon, then that of the account.
func askDaemon(b rundir.Base, uid uint32) (*wire.Grant, error) {
	for _, dir := range append([]string{b.System()}, b.Dirs(uid)...) {
		c, err := rundir.Dial(filepath.Join(dir, rundir.DaemonSocket), uid, 0)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.SetDeadline(time.Now().Add(askTimeout))
		m, err := wire.Read(c, wire.MaxMessage)
		c.Close()
		if err != nil {
			return nil, fmt.Errorf("the daemon gives no grant: %w", err)
		}
		failure := new(wire.Error)
		if err := m.Decode(failure); err == nil {
			return nil, failure
		}
		grant := new(wire.Grant)
		return grant, m.Decode(grant)
	}
	return nil, errNoDaemon
}
