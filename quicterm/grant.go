//go:build linux || darwin

package quicterm

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
	grantSocket = "qtd.sock"
	grantLock   = "qtd.lock"

	// grantTime bounds how long anything about a grant may take on one machine.
	grantTime = 5 * time.Second
)

// grants gives tickets to the accounts of this machine, over a unix socket that
// tells who is at its other end.
type grants struct {
	server   *Server
	listener *net.UnixListener
	lock     *os.File
	address  netip.AddrPort // of the daemon, as seen from this machine
}

// listenGrants makes the socket. Only one daemon of an account can.
func (s *Server) listenGrants(udp *net.UDPAddr) (*grants, error) {
	dir, err := s.grantDir()
	if err != nil {
		return nil, fmt.Errorf("directory for sockets: %w", err)
	}
	lock, err := lockFile(filepath.Join(dir, grantLock))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, grantSocket)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		lock.Close()
		return nil, err
	}
	l, err := rundir.Listen(path)
	if err == nil && s.anybody {
		err = os.Chmod(path, 0o666)
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("socket for grants: %w", err)
	}
	address := udp.AddrPort()
	if address.Addr().IsUnspecified() {
		address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), address.Port())
	}
	return &grants{server: s, listener: l, lock: lock, address: address}, nil
}

// grantDir returns where the socket is: with the accounts' directories if all
// are served, else in our own.
func (s *Server) grantDir() (string, error) {
	if !s.anybody {
		return s.base.Make(s.self.UID)
	}
	dir := s.base.System()
	return dir, os.MkdirAll(dir, 0o755)
}

// lockFile takes a lock that lasts until the file is closed or we end. The file
// says who has it.
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

func (g *grants) serve(ctx context.Context) error {
	defer g.lock.Close()
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
			g.server.log.Warn("accept grant", "error", err)
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

// answer gives whoever is at the other end a ticket.
func (g *grants) answer(c *net.UnixConn) error {
	c.SetDeadline(time.Now().Add(grantTime))
	uid, err := rundir.PeerUID(c)
	if err != nil {
		return err
	}
	if !g.server.anybody && uid != g.server.self.UID {
		return fmt.Errorf("user id %d asked, this daemon serves %d only", uid, g.server.self.UID)
	}
	ticket, err := g.server.tickets.Issue(time.Now(), uid)
	if err != nil {
		return errors.Join(err, wire.Send(c, &wire.Error{Text: err.Error()}))
	}
	g.server.touch()
	g.server.log.Info("grant", "uid", uid)
	return wire.Send(c, &wire.Grant{
		Address: g.address.String(),
		HostKey: g.server.hostKeys[0].Public.Marshal(),
		Ticket:  ticket,
	})
}

// Grant asks the daemon of this machine that serves our account for a ticket.
// If there is none it calls start, which starts one that serves us alone and
// returns when that listens, and asks that.
func Grant(base string, start func() error) (*wire.Grant, error) {
	b := rundir.Base(base)
	uid := uint32(os.Geteuid())
	grant, err := askGrant(b, uid)
	if !errors.Is(err, errNoDaemon) {
		return grant, err
	}
	dir, err := b.Make(uid)
	if err != nil {
		return nil, fmt.Errorf("directory for sockets: %w", err)
	}
	// Of several that find no daemon, one starts it and the others wait.
	f, err := os.OpenFile(filepath.Join(dir, "grant.lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	if grant, err = askGrant(b, uid); !errors.Is(err, errNoDaemon) {
		return grant, err
	}
	if err := start(); err != nil {
		return nil, err
	}
	return askGrant(b, uid)
}

// errNoDaemon means that no daemon of this machine serves the account.
var errNoDaemon = errors.New("no daemon is running")

// askGrant asks root's daemon, then our own.
func askGrant(b rundir.Base, uid uint32) (*wire.Grant, error) {
	for _, dir := range append([]string{b.System()}, b.Dirs(uid)...) {
		c, err := rundir.Dial(filepath.Join(dir, grantSocket), uid, 0)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.SetDeadline(time.Now().Add(grantTime))
		m, err := wire.Read(c, wire.MaxMessage)
		c.Close()
		if err != nil {
			return nil, fmt.Errorf("the daemon gives no grant: %w", err)
		}
		grant, failed := new(wire.Grant), new(wire.Error)
		if err := m.Decode(failed); err == nil {
			return nil, errors.New(failed.Text)
		}
		return grant, m.Decode(grant)
	}
	return nil, errNoDaemon
}
