//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/floodlog"
	"github.com/quicterm/quicterm/quicterm/machine/keyring"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/machine/systemd"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// processes implements [Holders]: each holder is a process with a unix socket.
type processes struct {
	base     rundir.Base
	names    *account.NameService
	only     *account.Account // nil if all accounts are served
	args     []string         // for the holders
	scopes   func() scopes    // for the holders; nil if they stay with the daemon
	outside  func(*exec.Cmd) error
	within   func(start func() error) error
	su       suFinder
	log      *slog.Logger
	children reaper
	warnings *floodlog.Log // of what an account has in its directory
	asks     slots
	readers  slots // processes of accounts that read records, also those that a disk keeps

	mu       sync.Mutex
	starting map[wire.SessionID]bool // holders that do not listen yet
}

// scopes is a [systemd.Scopes].
type scopes interface {
	Move(ctx context.Context, pid int, scope systemd.Scope) error
}

// scopeTime is how long the service manager may take to put a session into its scope. It
// does not end with the client's request: the session outlives that.
const scopeTime = 10 * time.Second

// An account can make any number of files in its directory.
const (
	// maxSockets bounds how many sockets of an account are looked at: twice the largest
	// max_sessions_per_user, for sessions that are over but wait for their client.
	maxSockets = 4000

	// maxNames bounds how many names are read from a directory, readNames at a time: the
	// sockets and some logs.
	maxNames, readNames = 2 * maxSockets, 250
)

// maxReaders bounds the processes of an account that read records: a disk that does not answer keeps
// even those that were killed.
const maxReaders = 4

// holderBase is the memory of a holder without output, in bytes, and with room for what
// differs between machines.
const holderBase = 8 << 20

// Memory implements [Holders]. A daemon for one account does not look at others.
func (p *processes) Memory() map[uint32]uint64 {
	if p.only != nil {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	const maxComm = 15 // bytes of a process's name, proc_pid_comm(5)
	name := filepath.Base(exe)
	sums, err := memory.ByAccount(name[:min(len(name), maxComm)], holderBase)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		p.log.Warn("cannot read what holders take", "error", err)
	}
	return sums
}

// Sessions implements [Holders].
func (p *processes) Sessions(uid uint32) []wire.SessionID {
	found := make(map[wire.SessionID]struct{}) // an account may have two directories
	for _, dir := range p.base.Dirs(uid) {
		complete, err := addSessions(found, dir, maxNames)
		if err != nil {
			p.warnings.Limited(time.Now(), p.log, "cannot list the sessions of an account", "uid", uid, "error", err)
		} else if !complete {
			p.warnings.Limited(time.Now(), p.log, "not all sessions of an account are looked at", "uid", uid,
				"reason", fmt.Sprintf("more than %d sockets, or %d files", maxSockets, maxNames))
		}
	}
	return slices.Collect(maps.Keys(found))
}

// addSessions adds the sessions that have a socket in a directory, among the first names. It
// reports whether it has looked at all of the directory.
func addSessions(found map[wire.SessionID]struct{}, dir string, names int) (complete bool, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer d.Close()
	for range names / readNames {
		some, err := d.Readdirnames(readNames)
		for _, name := range some {
			if id, ok := holder.ParseSocketName(name); ok {
				if len(found) == maxSockets {
					return false, nil
				}
				found[id] = struct{}{}
			}
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// Ask implements [Holders].
func (p *processes) Ask(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, request wire.Message,
) (answer wire.Message, err error) {
	err = p.connect(ctx, uid, id, func(path string) (err error) {
		answer, err = holder.Ask(ctx, path, uid, open, request)
		if errors.Is(err, syscall.ECONNREFUSED) {
			p.removeRefused(path, id) // its holder was killed
		}
		return err
	})
	return answer, err
}

// Carry implements [Holders].
func (p *processes) Carry(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, request wire.Message, datagrams bool,
) (answer wire.Message, c carrier.Carrier, err error) {
	err = p.connect(ctx, uid, id, func(path string) error {
		a, conn, err := holder.Carry(ctx, path, uid, open, request, datagrams)
		if err == nil {
			answer, c = a, conn
		}
		return err
	})
	return answer, c, err
}

// Accounts implements [Holders].
func (p *processes) Accounts() []uint32 {
	if p.only != nil {
		return []uint32{p.only.UID}
	}
	return p.base.Accounts()
}

// Await implements [Holders].
func (p *processes) Await(ctx context.Context, uid uint32, id wire.SessionID) (answer wire.Message, err error) {
	var c net.Conn
	err = p.connect(ctx, uid, id, func(path string) (err error) {
		c, err = holder.AskAtEnd(path, uid)
		return err
	})
	if err != nil {
		return answer, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	answer, err = wire.Read(c, wire.MaxAnswer)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return answer, err
}

// connect calls f with each path that a holder's socket may have, until f has reached
// the holder. The error is fs.ErrNotExist if none of the paths exists or all refuse. It
// blocks, until ctx ends, while maxAsks holders of the account are asked: each may keep a
// thread in a file system of the account that never answers.
func (p *processes) connect(ctx context.Context, uid uint32, id wire.SessionID, f func(path string) error) error {
	release, err := p.asks.take(ctx, uid, maxAsks)
	if err != nil {
		return err
	}
	defer release()
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
func (p *processes) Start(
	ctx context.Context, a *account.Account, client netip.Addr, launch *wire.Launch,
) (started wire.Started, err error) {
	credential, err := p.names.Credential(ctx, a)
	if err != nil {
		return started, err
	}
	login, err := p.loginOf(ctx, a)
	if err != nil {
		return started, err
	}
	local := *launch
	local.Base = string(p.base)
	if credential == nil {
		return p.run(ctx, a, &local, holder.Process{Login: login, Args: p.args}, func() {})
	}
	return p.startAs(ctx, a, credential, login, &local)
}

// Records implements [Holders].
func (p *processes) Records(ctx context.Context, a *account.Account, launch *wire.Launch) (answer wire.Message, err error) {
	credential, err := p.names.Credential(ctx, a)
	if err != nil {
		return answer, err
	}
	release, err := p.readers.take(ctx, a.UID, maxReaders)
	if err != nil {
		return answer, fmt.Errorf("the directory of the account's records does not answer, and %d processes wait for it", maxReaders)
	}
	args := p.args
	if credential != nil {
		args = append(slices.Clone(p.args), holder.OwnLogFlag)
	}
	pid, answer, err := holder.DoRecords(ctx, launch, holder.Process{Credential: credential, Args: args, Start: p.outside})
	if pid == 0 {
		release()
	} else {
		p.children.add(pid, release)
	}
	return answer, err
}

// startAs starts a holder as another account, with a socket in a directory where that
// account can make nothing.
func (p *processes) startAs(
	ctx context.Context, a *account.Account, credential *syscall.Credential, login *holder.Login, launch *wire.Launch,
) (started wire.Started, err error) {
	dir, err := p.base.MakeFor(a.UID, a.GID)
	if err != nil {
		return started, fmt.Errorf("directory for sockets: %w", err)
	}
	names, err := os.ReadDir(dir)
	if err == nil && len(names) >= maxSockets {
		err = fmt.Errorf("%s has %d sockets already, of sessions that live or wait for their clients", dir, len(names))
	}
	if err != nil {
		return started, err
	}
	p.setStarting(launch.ID, true)
	defer p.setStarting(launch.ID, false)
	launch.Socket = filepath.Join(dir, holder.SocketName(launch.ID))
	socket, err := rundir.Bind(launch.Socket, a.UID, a.GID)
	if err != nil {
		return started, fmt.Errorf("make socket: %w", err)
	}
	defer socket.Close()
	process := holder.Process{
		Credential: credential, Login: login, Socket: socket, Args: append(slices.Clone(p.args), holder.OwnLogFlag),
	}
	return p.run(ctx, a, launch, process, func() { removeName(launch.Socket) })
}

// run starts a holder in a scope of its own. It calls ended when the process has ended, or does not start.
func (p *processes) run(
	ctx context.Context, a *account.Account, launch *wire.Launch, process holder.Process, ended func(),
) (started wire.Started, err error) {
	start := p.outside
	if start == nil {
		start = keyring.Start
	}
	process.Start, process.Move = start, func(pid int) { p.move(ctx, pid, a, launch.ID) }
	if p.within != nil {
		process.Start = func(cmd *exec.Cmd) error { return p.within(func() error { return start(cmd) }) }
	}
	pid, started, err := holder.Start(ctx, launch, process)
	if pid == 0 {
		ended()
		return started, err
	}
	p.children.add(pid, ended)
	return started, err
}

// move puts a holder into a scope of its own, in a slice for the sessions of its account. That is
// not the slice in which the login manager keeps the logins of the account, as some versions stop
// that one at the last logout. If it fails, the holder stays with the daemon: it outlives a restart,
// but not a unit or a login that ends with all its processes.
func (p *processes) move(ctx context.Context, pid int, a *account.Account, id wire.SessionID) {
	if p.scopes == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scopeTime)
	defer cancel()
	scope := systemd.Scope{
		Unit:        "qt-" + id.Short() + ".scope",
		Slice:       fmt.Sprintf("quicterm-%d.slice", a.UID),
		Description: "quicterm session of " + a.Name,
	}
	if err := p.scopes().Move(ctx, pid, scope); err != nil {
		p.log.Warn("session has no scope of its own", "account", a.Name, "id", id.Short(), "error", err)
	}
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
