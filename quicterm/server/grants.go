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

// grants gives grants to the accounts of this machine, over a unix socket that tells
// the account at its other end.
type grants struct {
	server   *Server
	listener *net.UnixListener
	lock     *os.File
	address  netip.AddrPort // of the daemon, as seen from this machine
}

// listenGrants makes the socket. It fails if another daemon of the account runs.
func (s *Server) listenGrants(address netip.AddrPort) (*grants, error) {
	dir, err := s.grantDir()
	if err != nil {
		return nil, fmt.Errorf("directory for sockets: %w", err)
	}
	lock, err := lockFile(filepath.Join(dir, daemonLock))
	if err != nil {
		return nil, err
	}
	l, err := s.listenGrantSocket(filepath.Join(dir, rundir.DaemonSocket))
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("socket for grants: %w", err)
	}
	if address.Addr().IsUnspecified() {
		address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), address.Port())
	}
	return &grants{server: s, listener: l, lock: lock, address: address}, nil
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
		return nil, fmt.Errorf("another daemon serves this account already, process %s: end it first, its sessions stay", strings.TrimSpace(string(pid)))
	}
	f.Truncate(0)
	f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	return f, nil
}

// serve answers connections until ctx ends. It closes the socket and the lock.
func (g *grants) serve(ctx context.Context) error {
	defer g.lock.Close()
	defer g.listener.Close()
	stop := context.AfterFunc(ctx, func() { g.listener.Close() })
	defer stop()
	for {
		c, err := g.listener.AcceptUnix()
		if err != nil {
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
			continue
		}
		if err := g.answer(c); err != nil {
			g.server.log.Warn("grant refused", "error", err)
		}
		c.Close()
	}
}

// answer sends a grant for the account at the other end of a connection.
func (g *grants) answer(c *net.UnixConn) error {
	c.SetDeadline(time.Now().Add(grantTimeout))
	uid, err := rundir.PeerUID(c)
	if err != nil {
		return err
	}
	if !g.server.serves(uid) {
		return fmt.Errorf("user id %d asked, this daemon serves %d only", uid, g.server.self.UID)
	}
	token, err := g.server.IssueToken(uid)
	if err != nil {
		return errors.Join(err, wire.Send(c, &wire.Error{Text: err.Error()}))
	}
	g.server.use()
	g.server.log.Info("grant given", "uid", uid)
	return wire.Send(c, &wire.Grant{
		Address: g.address.String(),
		HostKey: g.server.hostKeys[0].Public.Marshal(),
		Token:   token,
	})
}
