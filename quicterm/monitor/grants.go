//go:build linux || darwin

package monitor

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

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/machine/sandbox"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/quota"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// errTooOften is the error of an account that asks for too many grants at once.
var errTooOften = errors.New("too many attempts")

const (
	// daemonLock is the file that the daemon of an account has locked.
	daemonLock = "qtd.lock"

	// maxGrants bounds how many grants an account is given at once, and maxAllGrants those of
	// all accounts: each has a descriptor, and asks the name service.
	maxGrants, maxAllGrants = 16, 256
)

// grants gives grants to the accounts of this machine, over a unix socket that tells
// the account and the process at its other end.
type grants struct {
	server   *Monitor
	listener *net.UnixListener // nil if the setting grants is off
	lock     *os.File
	public   func() (netip.AddrPort, error) // the daemon's address, with the port for other machines
	turns    *quota.Turns[uint32]           // of accounts that are being given a grant
}

// listenGrants makes the socket. It fails if another daemon of the account runs.
func (s *Monitor) listenGrants() (*grants, error) {
	dir, err := s.grantDir()
	if err != nil {
		return nil, fmt.Errorf("directory for sockets: %w", err)
	}
	lock, err := lockFile(filepath.Join(dir, daemonLock))
	if err != nil {
		return nil, err
	}
	g := &grants{server: s, lock: lock, turns: quota.NewTurns[uint32](maxAllGrants, maxGrants)}
	if g.listener, err = s.listenGrantSocket(filepath.Join(dir, rundir.DaemonSocket)); err != nil {
		lock.Close()
		return nil, fmt.Errorf("socket for grants: %w", err)
	}
	return g, nil
}

// grantDir returns the directory of the socket: the one of all accounts if all are served, else the account's own.
func (s *Monitor) grantDir() (string, error) {
	if !s.all {
		return s.base.Make()
	}
	return s.base.System(), s.base.MakeSystem()
}

func (s *Monitor) listenGrantSocket(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if s.settings().Grants == "off" {
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

// lockFile locks a file, until it is closed or this process ends, and writes the process id into it.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	lock := func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	err = lock()
	for start := time.Now(); errors.Is(err, syscall.EWOULDBLOCK) && time.Since(start) < promptTime; err = lock() {
		time.Sleep(promptTime / 200)
	}
	if err != nil {
		pid, _ := io.ReadAll(io.LimitReader(f, 20))
		f.Close()
		return nil, fmt.Errorf("another daemon serves this account already, process %s: end it first, its sessions stay",
			strings.TrimSpace(string(pid)))
	}
	f.Truncate(0)
	f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	return f, nil
}

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
	for {
		c, err := g.listener.AcceptUnix()
		if err == nil {
			wg.Go(func() {
				defer c.Close()
				log := g.server.log
				uid, err := rundir.PeerUID(c)
				if err == nil {
					log = log.With("uid", uid)
					err = g.server.contain(log, func() error { return g.answer(ctx, c, uid) })
				}
				if err != nil {
					g.server.counts.refused.Add(1)
					g.server.deniedLog.Limited(time.Now(), log, "grant refused", "event", "refuse", "error", err)
				}
			})
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		g.server.log.Warn("cannot accept a connection for a grant", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(AcceptPause):
		}
	}
}

// answer sends a grant for the account at the other end of a connection, or why there is none,
// and serves the client whose carrier the connection then is, if it is to be one.
func (g *grants) answer(ctx context.Context, c *net.UnixConn, uid uint32) error {
	if !g.server.serves(uid) {
		return fmt.Errorf("this daemon serves user id %d only", g.server.self.UID)
	}
	end, ok := g.turns.Try(uid)
	if !ok {
		return errTooOften
	}
	client, err := g.give(ctx, c, uid)
	end()
	if err != nil {
		return err
	}
	if client != nil {
		(*g.server.network.Load()).ServeLocal(ctx, c, client)
	}
	return nil
}

// give answers the Ask on a connection. It returns the client whose carrier the connection is now, or nil.
func (g *grants) give(ctx context.Context, c *net.UnixConn, uid uint32) (*privsep.Local, error) {
	c.SetDeadline(time.Now().Add(grantTimeout))
	ctx, cancel := context.WithTimeout(ctx, grantTimeout)
	defer cancel()
	m, err := wire.Read(c, maxAsk)
	if err != nil {
		return nil, ignoreGone(err)
	}
	var ask wire.Ask
	if err := m.Decode(&ask); err != nil {
		return nil, err
	}
	grant, client, a, err := g.grant(ctx, c, uid, &ask)
	if err != nil {
		return nil, errors.Join(err, wire.Send(c, &wire.Error{Text: err.Error()}))
	}
	g.server.use()
	if err := wire.Send(c, grant); err != nil {
		return nil, ignoreGone(err)
	}
	g.server.counts.grants.Add(1)
	proof := privsep.ProofToken
	if ask.Carrier {
		proof = privsep.ProofSSH
	}
	log := privsep.Credential{Proof: proof, Reported: ask.Reported}.On(g.server.log)
	log.Info("grant given", "event", "grant", "account", a.Name, "uid", uid)
	return client, c.SetDeadline(time.Time{})
}

// maxAsk is the size of the largest Ask, in bytes.
const maxAsk = 1 << 10

// ignoreGone returns nil if the process that asked is gone: nothing was refused.
func ignoreGone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	return err
}

// grant returns a grant for the process at the other end of a connection. A session has
// all rights of its account: a process that has fewer of them gets none.
func (g *grants) grant(
	ctx context.Context, c *net.UnixConn, uid uint32, ask *wire.Ask,
) (grant *wire.Grant, client *privsep.Local, a *account.Account, err error) {
	if err := sandbox.CheckPeer(c, g.server.outside); err != nil {
		return nil, nil, nil, err
	}
	if a, err = g.server.names.LookupID(ctx, uid); err != nil {
		return nil, nil, nil, err
	}
	switch filepath.Base(a.Shell) {
	case "nologin", "false":
		return nil, nil, nil, fmt.Errorf("the account %s may not log in: its shell is %s", a.Name, a.Shell)
	}
	grant = &wire.Grant{
		HostKey:  g.server.hostKeys[0].Public.Marshal(),
		Software: g.server.software,
		Protocol: wire.ALPN,
	}
	address := g.server.address()
	if ask.Carrier {
		if client, err = g.server.admitLocal(ctx, a, ask); err == nil {
			address, err = g.public()
		}
	} else if grant.Token, err = g.server.tokens.Issue(time.Now(), auth.Grantee{UID: a.UID, Reported: ask.Reported}); err == nil &&
		ask.Client != "" { // it comes from another machine
		address, err = g.public()
	}
	if err != nil {
		return nil, nil, nil, err
	}
	grant.Address = address.String()
	return grant, client, a, nil
}
