//go:build linux || darwin

package bootstrap

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Ask asks the daemon of this machine that serves our account for a grant. If no daemon
// serves it, Ask calls start, which starts one for our account alone and returns when
// that listens, and asks that one. base is the setting runtime_dir.
func Ask(base string, start func() error) (*wire.Grant, error) {
	return askForToken(base, &wire.Ask{Reported: currentLogin().reported}, start)
}

// AskOverSSH is Ask for a client that comes from another machine: the daemon listens on all addresses then.
func AskOverSSH(base string, start func() error) (*wire.Grant, error) {
	login := currentLogin()
	return askForToken(base, &wire.Ask{Client: login.client, Server: login.server, Reported: login.reported}, start)
}

func askForToken(base string, ask *wire.Ask, start func() error) (*wire.Grant, error) {
	grant, c, err := exchange(base, ask, start)
	if err == nil {
		c.Close()
	}
	return grant, err
}

// Open is Ask for the carrier of a client that has come over ssh. The connection that it returns is the
// carrier's stream.
func Open(base string, start func() error) (*wire.Grant, *net.UnixConn, error) {
	login := currentLogin()
	ask := &wire.Ask{Carrier: true, Client: login.client, Server: login.server, Reported: login.reported}
	return exchange(base, ask, start)
}

func exchange(base string, ask *wire.Ask, start func() error) (*wire.Grant, *net.UnixConn, error) {
	b := rundir.Base(base)
	uid := uint32(os.Geteuid())
	grant, c, err := askDaemon(b, uid, ask)
	if !errors.Is(err, errNoDaemon) {
		return grant, c, err
	}
	dir, err := b.Make()
	if err != nil {
		return nil, nil, fmt.Errorf("directory for sockets: %w", err)
	}
	// If several processes find no daemon, one starts it and the others wait.
	f, err := os.OpenFile(filepath.Join(dir, "grant.lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, nil, err
	}
	if grant, c, err = askDaemon(b, uid, ask); !errors.Is(err, errNoDaemon) {
		return grant, c, err
	}
	if err := start(); err != nil {
		return nil, nil, err
	}
	return askDaemon(b, uid, ask)
}

// errNoDaemon is the error of a grant if no daemon of this machine serves the account.
var errNoDaemon = errors.New("no daemon is running")

// askDaemon asks root's daemon, then that of the account.
func askDaemon(b rundir.Base, uid uint32, ask *wire.Ask) (*wire.Grant, *net.UnixConn, error) {
	for _, dir := range append([]string{b.System()}, b.Dirs(uid)...) {
		c, err := rundir.Dial(filepath.Join(dir, rundir.DaemonSocket), uid, 0)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		grant, err := askOn(c, ask)
		if err != nil {
			c.Close()
			return nil, nil, err
		}
		return grant, c, nil
	}
	return nil, nil, errNoDaemon
}

// askOn asks the daemon at the other end of a connection.
func askOn(c *net.UnixConn, ask *wire.Ask) (*wire.Grant, error) {
	c.SetDeadline(time.Now().Add(askTimeout))
	wire.Send(c, ask) // a daemon that waits for nothing has answered and closed already
	m, err := wire.Read(c, wire.MaxMessage)
	if err != nil {
		return nil, fmt.Errorf("the daemon gives no grant: %w", err)
	}
	failure := new(wire.Error)
	if err := m.Decode(failure); err == nil {
		return nil, failure
	}
	grant := new(wire.Grant)
	if err := errors.Join(m.Decode(grant), c.SetDeadline(time.Time{})); err != nil {
		return nil, err
	}
	return grant, nil
}
