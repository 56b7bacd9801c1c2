//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/account"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// processes implements [Holders]: each holder is a process with a unix socket.
type processes struct {
	base     rundir.Base
	names    *account.NameService
	only     *account.Account // nil if all accounts are served
	args     []string         // for the holders
	log      *slog.Logger
	children reaper

	mu       sync.Mutex
	starting map[wire.SessionID]bool // holders that do not listen yet
}

// maxSockets bounds how many sockets of an account are looked at: an account can
// make any number of them in its directory.
const maxSockets = 2000

// Accounts implements [Holders].
func (p *processes) Accounts() []uint32 {
	if p.only != nil {
		return []uint32{p.only.UID}
	}
	dirs, err := os.ReadDir(p.base.System())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.log.Warn("cannot list the accounts that have sessions", "error", err)
	}
	var uids []uint32
	for _, d := range dirs {
		if uid, err := strconv.ParseUint(d.Name(), 10, 32); err == nil {
			uids = append(uids, uint32(uid))
		}
	}
	return uids
}

// Sessions implements [Holders].
func (p *processes) Sessions(uid uint32) []wire.SessionID {
	found := make(map[wire.SessionID]struct{}) // an account may have two directories
	var ids []wire.SessionID
	for _, dir := range p.base.Dirs(uid) {
		files, err := os.ReadDir(dir)
		if err != nil {
			p.log.Warn("cannot list the sessions of an account", "uid", uid, "error", err)
			continue
		}
		for _, f := range files {
			id, ok := holder.ParseSocketName(f.Name())
			if _, known := found[id]; !ok || known {
				continue
			}
			if len(ids) == maxSockets {
				p.log.Warn("not all sessions of an account are looked at", "uid", uid, "reason", fmt.Sprintf("more than %d sockets", maxSockets))
				return ids
			}
			found[id] = struct{}{}
			ids = append(ids, id)
		}
	}
	return ids
}

// Ask implements [Holders].
func (p *processes) Ask(ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, request wire.Message) (answer wire.Message, err error) {
	err = p.connect(uid, id, func(path string) (err error) {
		answer, err = holder.Ask(ctx, path, uid, open, request)
		if errors.Is(err, syscall.ECONNREFUSED) {
			p.removeRefused(path, id) // its holder was killed
		}
		return err
	})
	return answer, err
}

// Carry implements [Holders].
func (p *processes) Carry(ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, request wire.Message) (answer wire.Message, c carrier.Carrier, err error) {
	err = p.connect(uid, id, func(path string) error {
		a, conn, err := holder.Carry(ctx, path, uid, open, request)
		if err == nil {
			answer, c = a, conn
		}
		return err
	})
	return answer, c, err
}

// connect calls f with each path that a holder's socket may have, until f has reached
// the holder. The error is fs.ErrNotExist if none of the paths exists or all refuse.
func (p *processes) connect(uid uint32, id wire.SessionID, f func(path string) error) error {
	for _, dir := range p.base.Dirs(uid) {
		err := f(filepath.Join(dir, holder.SocketName(id)))
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
	}
	if err := p.base.Unsafe(uid); err != nil { // the socket may be there
		return err
	}
	return fs.ErrNotExist
}

// removeRefused removes a socket that refuses connections, unless its holder is about to
// listen.
func (p *processes) removeRefused(path string, id wire.SessionID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.starting[id] {
		removeName(path)
	}
}

// removeName removes a name from a directory in which only this process's account makes
// names. In a directory of another account it removes nothing.
func removeName(path string) {
	if dir, err := rundir.Open(filepath.Dir(path)); err == nil {
		dir.Remove(filepath.Base(path))
		dir.Close()
	}
}

// Start implements [Holders].
func (p *processes) Start(ctx context.Context, a *account.Account, launch *wire.Launch) error {
	credential, err := p.names.Credential(ctx, a)
	if err != nil {
		return err
	}
	local := *launch
	local.Base = string(p.base)
	if credential == nil {
		pid, err := holder.Start(ctx, &local, nil, nil, p.args...)
		if pid != 0 {
			p.children.add(pid, func() {})
		}
		return err
	}
	return p.startAs(ctx, a, credential, &local)
}

// startAs starts a holder as another account, with a socket in a directory where that
// account can make nothing.
func (p *processes) startAs(ctx context.Context, a *account.Account, credential *syscall.Credential, launch *wire.Launch) error {
	dir, err := p.base.MakeFor(a.UID, a.GID)
	if err != nil {
		return fmt.Errorf("directory for sockets: %w", err)
	}
	names, err := os.ReadDir(dir)
	if err == nil && len(names) >= maxSockets {
		err = fmt.Errorf("%s has %d sockets already, of sessions that live or are kept for exited_ttl", dir, len(names))
	}
	if err != nil {
		return err
	}
	p.setStarting(launch.ID, true)
	defer p.setStarting(launch.ID, false)
	launch.Socket = filepath.Join(dir, holder.SocketName(launch.ID))
	socket, err := rundir.Bind(launch.Socket, a.UID, a.GID)
	if err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	defer socket.Close()
	pid, err := holder.Start(ctx, launch, credential, socket, append(slices.Clone(p.args), holder.OwnLogFlag)...)
	if pid == 0 {
		removeName(launch.Socket)
		return err
	}
	p.children.add(pid, func() { removeName(launch.Socket) })
	return err
}

func (p *processes) setStarting(id wire.SessionID, starting bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !starting {
		delete(p.starting, id)
		return
	}
	if p.starting == nil {
		p.starting = make(map[wire.SessionID]bool)
	}
	p.starting[id] = true
}
