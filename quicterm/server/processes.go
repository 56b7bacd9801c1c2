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
			os.Remove(path) // its holder was killed
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

// Start implements [Holders].
func (p *processes) Start(ctx context.Context, a *account.Account, launch *wire.Launch) error {
	dir, err := p.base.Make(a.UID)
	if err != nil {
		return fmt.Errorf("directory for sockets: %w", err)
	}
	credential, err := p.names.Credential(ctx, a)
	if err != nil {
		return err
	}
	args := p.args
	if credential != nil { // the account must not write to the daemon's log
		args = append(slices.Clone(args), holder.LogFlag, filepath.Join(dir, "holders.log"))
	}
	local := *launch
	local.Base = string(p.base)
	pid, err := holder.Start(ctx, &local, credential, args...)
	if pid != 0 {
		p.children.add(pid)
	}
	return err
}
