//go:build linux || darwin

package processes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/floodlog"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/machine/systemd"
	"github.com/quicterm/quicterm/quicterm/quota"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Config configures [Local].
type Config struct {
	Base  rundir.Base
	Names *account.NameService
	Only  *account.Account // nil if all accounts are served
	Log   *slog.Logger

	Args []string // further ones of the holders
	PAM  bool     // sessions of accounts are opened by su, where it works

	// Move puts a holder into a scope of its own. An account may linger only since the last one. Nil leaves the holder
	// with the daemon.
	Move func(ctx context.Context, pid int, scope systemd.Scope) error

	// Outside starts a process that does not inherit what confines the daemon, and Within calls a function that starts
	// one with the limits that the daemon was started with. Nil means that nothing confines or limits the daemon.
	Outside func(*exec.Cmd) error
	Within  func(start func() error) error
}

// Local are the holders of this machine: each is a process with a unix socket. It implements [Holders].
type Local struct {
	Config
	su       suFinder
	children reaper
	warnings *floodlog.Log // of what an account has in its directory
	asks     *quota.Turns[Asker]
	readers  *quota.Turns[uint32] // processes of accounts that read records, also those that a disk keeps
}

// New returns the holders of this machine. Run must run while it starts some.
func New(c Config) *Local {
	return &Local{
		Config: c, warnings: floodlog.New(warningBurst),
		asks: quota.NewTurns[Asker](0, MaxAsks), readers: quota.NewTurns[uint32](0, maxReaders),
	}
}

// Run waits for the ends of the processes that were started, until ctx ends.
func (p *Local) Run(ctx context.Context) error { return p.children.run(ctx) }

// An account can make any number of files in its directory.
const (
	// MaxSockets bounds how many sockets of an account are looked at: twice the largest
	// max_sessions_per_user, for sessions that are over but wait for their client.
	MaxSockets = 4000

	// maxNames bounds how many names are read from a directory, readNames at a time: the sockets and some logs.
	maxNames, readNames = 2 * MaxSockets, 250
)

// warningBurst is how many warnings are logged at once, before it is one a second.
const warningBurst = 4

// MaxAsks bounds how many holders are asked at once on behalf of one request, and of an account in all by a [Side].
const MaxAsks = 64

// holderBase is the memory of a holder without output, in bytes, and with room for what differs between machines.
const holderBase = 8 << 20

// Memory implements [Holders]. A daemon for one account does not look at others.
func (p *Local) Memory() map[uint32]uint64 {
	if p.Only != nil {
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
		p.Log.Warn("cannot read what holders take", "error", err)
	}
	return sums
}

// Sessions implements [Holders].
func (p *Local) Sessions(uid uint32) []wire.SessionID {
	found := make(map[wire.SessionID]struct{}) // an account may have two directories
	for _, dir := range p.Base.Dirs(uid) {
		complete, err := addSessions(found, dir, maxNames)
		if err != nil {
			p.warnings.Limited(time.Now(), p.Log, "cannot list the sessions of an account", "uid", uid, "error", err)
		} else if !complete {
			p.warnings.Limited(time.Now(), p.Log, "not all sessions of an account are looked at", "uid", uid,
				"reason", fmt.Sprintf("more than %d sockets, or %d files", MaxSockets, maxNames))
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
			if id, ok := socket.ParseName(name); ok {
				if len(found) == MaxSockets {
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
func (p *Local) Ask(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, request wire.Message,
) (answer wire.Message, err error) {
	err = p.connect(ctx, uid, id, func(path string) (err error) {
		answer, err = socket.Ask(ctx, path, uid, open, request)
		if errors.Is(err, syscall.ECONNREFUSED) {
			removeRefused(path) // its holder was killed
		}
		return err
	})
	return answer, err
}

// Carry implements [Holders].
func (p *Local) Carry(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, request wire.Message, datagrams bool,
) (answer wire.Message, c carrier.Carrier, err error) {
	err = p.connect(ctx, uid, id, func(path string) error {
		a, conn, err := socket.Carry(ctx, path, uid, open, request, datagrams)
		if err == nil {
			answer, c = a, conn
		}
		return err
	})
	return answer, c, err
}

// Accounts implements [Holders].
func (p *Local) Accounts() []uint32 {
	if p.Only != nil {
		return []uint32{p.Only.UID}
	}
	return p.Base.Accounts()
}

// Await implements [Holders].
func (p *Local) Await(ctx context.Context, uid uint32, id wire.SessionID) (answer wire.Message, err error) {
	var c net.Conn
	err = p.connect(ctx, uid, id, func(path string) (err error) {
		c, err = socket.AskAtEnd(path, uid)
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
// the holder. The error is fs.ErrNotExist if none of the paths exists or all refuse, or if
// the holder has ended meanwhile: its socket goes first. It blocks, until ctx ends, while MaxAsks holders of the account are asked: each may keep a
// thread in a file system of the account that never answers.
func (p *Local) connect(ctx context.Context, uid uint32, id wire.SessionID, f func(path string) error) error {
	release, err := p.asks.Take(ctx, AskerOf(ctx, uid))
	if err != nil {
		return err
	}
	defer release()
	for _, dir := range p.Base.Dirs(uid) {
		path := filepath.Join(dir, socket.Name(id))
		err := f(path)
		if err == nil {
			return nil
		}
		if _, gone := os.Lstat(path); !errors.Is(gone, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
	}
	if err := p.Base.Unsafe(uid); err != nil { // the socket may be there
		return err
	}
	return fs.ErrNotExist
}

// listenTime is how old a socket may be before its holder listens: three times what a start may take.
const listenTime = 3 * spawn.Time

// removeRefused removes a socket that refuses connections, unless its holder may be about to listen.
func removeRefused(path string) {
	if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > listenTime {
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
