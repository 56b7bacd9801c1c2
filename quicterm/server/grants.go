//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// daemonLock is the file that the daemon of an account has locked.
	daemonLock = "qtd.lock"

	// grantTimeout bounds how long a grant may take.
	grantTimeout = 5 * time.Second
)

// maxGrants bounds how many grants are given at once: each asks the name service.
const maxGrants = 16

// grants gives grants to the accounts of this machine, over a unix socket that tells
// the account and the process at its other end.
type grants struct {
	server   *Server
	listener *net.UnixListener // nil if the setting grants is off
	lock     *os.File
	address  func() (netip.AddrPort, error) // of the daemon, as seen from this machine
}

// listenGrants makes the socket. It fails if another daemon of the account runs.
func (s *Server) listenGrants() (*grants, error) {
	dir, err := s.grantDir()
	if err != nil {
		return nil, fmt.Errorf("directory for sockets: %w", err)
	}
	lock, err := lockFile(filepath.Join(dir, daemonLock))
	if err != nil {
		return nil, err
	}
	g := &grants{server: s, lock: lock}
	if g.listener, err = s.listenGrantSocket(filepath.Join(dir, rundir.DaemonSocket)); err != nil {
		lock.Close()
		return nil, fmt.Errorf("socket for grants: %w", err)
	}
	return g, nil
}

// grantDir returns the directory of the socket: the one of all accounts if all are
// served, else the account's own.
func (s *Server) grantDir() (string, error) {
	if !s.all {
		return s.base.Make()
	}
	return s.base.System(), s.base.MakeSystem()
}

func (s *Server) listenGrantSocket(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if s.settings.Grants == "off" {
		return nil, nil
	}
	l, err := rundir.Listen(path)
	if err == nil && s.all {
		if err = os.Chmod(path, 0o666); err != nil {
			l.Close()
		}
	}
	return l, err
}

// lockFile locks a file, until it is closed or this process ends, and writes the
// process id into it.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		pid, _ := io.ReadAll(io.LimitReader(f, 20))
		f.Close()
		return nil, fmt.Errorf("another daemon serves this account already, process %s: end it first, its sessions stay",
			strings.TrimSpace(string(pid)))
	}
	f.Truncate(0)
	f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	return f, nil
}

// close closes the socket and the lock.
func (g *grants) close() {
	if g.listener != nil {
		g.listener.Close()
	}
	g.lock.Close()
}

// serve answers connections until ctx ends. It closes the socket and the lock.
func (g *grants) serve(ctx context.Context) error {
	defer g.close()
	if g.listener == nil {
		<-ctx.Done()
		return nil
	}
	stop := context.AfterFunc(ctx, func() { g.listener.Close() })
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxGrants)
	for {
		slots <- struct{}{}
		c, err := g.listener.AcceptUnix()
		if err == nil {
			wg.Go(func() {
				defer func() { <-slots }()
				defer c.Close()
				if err := g.server.contain(g.server.log, func() error { return g.answer(ctx, c) }); err != nil {
					g.server.deniedLog.warn(time.Now(), g.server.log, "grant refused", "error", err)
				}
			})
			continue
		}
		<-slots
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		g.server.log.Warn("cannot accept a connection for a grant", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// answer sends a grant for the account at the other end of a connection, or why there is
// none.
func (g *grants) answer(ctx context.Context, c *net.UnixConn) error {
	c.SetDeadline(time.Now().Add(grantTimeout))
	uid, err := rundir.PeerUID(c)
	if err != nil {
		return err
	}
	if !g.server.serves(uid) {
		return fmt.Errorf("user id %d asked, this daemon serves %d only", uid, g.server.self.UID)
	}
	grant, err := g.grant(ctx, c, uid)
	if err != nil {
		return errors.Join(fmt.Errorf("user id %d: %w", uid, err), wire.Send(c, &wire.Error{Text: err.Error()}))
	}
	g.server.use()
	switch err := wire.Send(c, grant); {
	case errors.Is(err, syscall.EPIPE): // who asked is gone: nothing was refused
		return nil
	case err != nil:
		return err
	}
	g.server.log.Info("grant given", "uid", uid)
	return nil
}

// grant returns a grant for the process at the other end of a connection. A session has
// all rights of its account: a process that has fewer of them gets none.
func (g *grants) grant(ctx context.Context, c *net.UnixConn, uid uint32) (*wire.Grant, error) {
	if err := checkConfinement(c); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, grantTimeout)
	defer cancel()
	a, err := g.server.names.LookupID(ctx, uid)
	if err != nil {
		return nil, err
	}
	switch filepath.Base(a.Shell) {
	case "nologin", "false":
		return nil, fmt.Errorf("the account %s may not log in: its shell is %s", a.Name, a.Shell)
	}
	address, err := g.address()
	if err != nil {
		return nil, err
	}
	token, err := g.server.IssueToken(uid)
	if err != nil {
		return nil, err
	}
	return &wire.Grant{
		Address: address.String(),
		HostKey: g.server.hostKeys[0].Public.Marshal(),
		Token:   token,
	}, nil
}
