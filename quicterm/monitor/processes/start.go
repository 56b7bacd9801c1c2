//go:build linux || darwin

package processes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/keyring"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/machine/systemd"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// scopeTime is how long the service manager may take to put a session into its scope: half of what the holder has to
// start. It does not end with the client's request: the session outlives that.
const scopeTime = spawn.Time / 2

// maxReaders bounds the processes of an account that read records: a disk that does not answer keeps
// even those that were killed.
const maxReaders = 4

// Start implements [Holders].
func (p *Local) Start(ctx context.Context, a *account.Account, launch *wire.Launch) error {
	credential, err := p.Names.Credential(ctx, a)
	if err != nil {
		return err
	}
	login, err := p.loginOf(ctx, a)
	if err != nil {
		return err
	}
	local := *launch
	local.Base = string(p.Base)
	if credential == nil {
		return p.run(ctx, a, &local, spawn.Process{Login: login, Args: p.Args}, func() {})
	}
	return p.startAs(ctx, a, credential, login, &local)
}

// Records implements [Holders].
func (p *Local) Records(ctx context.Context, a *account.Account, launch *wire.Launch) (answer wire.Message, err error) {
	credential, err := p.Names.Credential(ctx, a)
	if err != nil {
		return answer, err
	}
	release, err := p.readers.Take(ctx, a.UID)
	if err != nil {
		return answer, fmt.Errorf(
			"the directory of the account's records does not answer, and %d processes wait for it", maxReaders)
	}
	args := p.Args
	if credential != nil {
		args = append(slices.Clone(p.Args), spawn.OwnLogFlag)
	}
	pid, answer, err := spawn.Task(ctx, launch, spawn.Process{Credential: credential, Args: args, Start: p.Outside})
	if pid == 0 {
		release()
	} else {
		p.children.add(pid, release)
	}
	return answer, err
}

// startAs starts a holder as another account, with a socket in a directory where that account can make nothing.
func (p *Local) startAs(
	ctx context.Context, a *account.Account, credential *syscall.Credential, login *spawn.Login, launch *wire.Launch,
) error {
	dir, err := p.Base.MakeFor(a.UID, a.GID)
	if err != nil {
		return fmt.Errorf("directory for sockets: %w", err)
	}
	names, err := os.ReadDir(dir)
	if err == nil && len(names) >= MaxSockets {
		err = fmt.Errorf("%s has %d sockets already, of sessions that live or wait for their clients", dir, len(names))
	}
	if err != nil {
		return err
	}
	launch.Socket = filepath.Join(dir, socket.Name(launch.ID))
	socket, err := rundir.Bind(launch.Socket, a.UID, a.GID)
	if err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	defer socket.Close()
	process := spawn.Process{
		Credential: credential, Login: login, Socket: socket, Args: append(slices.Clone(p.Args), spawn.OwnLogFlag),
	}
	return p.run(ctx, a, launch, process, func() { removeName(launch.Socket) })
}

// run starts a holder in a scope of its own. It calls ended when the process has ended, or does not start.
func (p *Local) run(
	ctx context.Context, a *account.Account, launch *wire.Launch, process spawn.Process, ended func(),
) error {
	start := p.Outside
	if start == nil {
		start = keyring.Start
	}
	process.Start, process.Move = start, func(pid int) { p.putAside(ctx, pid, a, launch.ID) }
	if p.Within != nil {
		process.Start = func(cmd *exec.Cmd) error { return p.Within(func() error { return start(cmd) }) }
	}
	pid, err := spawn.Session(ctx, launch, process)
	if pid == 0 {
		ended()
		return err
	}
	p.children.add(pid, ended)
	return err
}

// putAside puts a holder into a scope of its own, in a slice for the sessions of its account. That is
// not the slice in which the login manager keeps the logins of the account, as some versions stop
// that one at the last logout. If it fails, the holder stays with the daemon: it outlives a restart,
// but not a unit or a login that ends with all its processes.
func (p *Local) putAside(ctx context.Context, pid int, a *account.Account, id wire.SessionID) {
	if p.Move == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scopeTime)
	defer cancel()
	scope := systemd.Scope{
		Unit:        "qt-" + id.Short() + ".scope",
		Slice:       fmt.Sprintf("quicterm-%d.slice", a.UID),
		Description: "quicterm session of " + a.Name,
	}
	if err := p.Move(ctx, pid, scope); err != nil {
		p.Log.Warn("session has no scope of its own", "account", a.Name, "id", id.Short(), "error", err)
	}
}
