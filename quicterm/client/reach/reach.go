// Package reach finds a way to a server for one command: by a grant on this machine, by the user's keys where a daemon
// is known to answer, or by ssh. It asks the user what a login needs, and remembers for a day how a server was reached.
package reach

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
	"github.com/quicterm/quicterm/quicterm/machine/terminfo"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/version"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An Access is a way to a server, for one command.
type Access struct {
	Client   *client.Client
	Settings *configs.Client
	Target   *Target
	Tunnel   *bootstrap.SSH // nil if ssh is not used
	Log      *slog.Logger
	WasKnown bool                               // before this command, the target's key was in a file
	before   reached                            // how the target was reached, or zero
	inspect  func(key ssh.PublicKey, err error) // as in Options
}

// A Call does what a command is for. It may be called again if its error says that the server
// was not reached or not trusted.
type Call func(context.Context, *Access) error

// With calls f with an access to a server, and explains the error of f to the user.
func With(ctx context.Context, name string, opts *Options, f Call) error {
	a, cfg, err := newAccess(ctx, name, opts)
	if err != nil {
		return err
	}
	if a.Target.Local {
		return Explain(a.byGrant(ctx, sayForSSH, cfg, f), a.Target)
	}
	return Explain(a.reach(ctx, cfg, f), a.Target)
}

// newAccess returns an access that has no client yet, and what all its clients have in common.
func newAccess(ctx context.Context, name string, opts *Options) (*Access, client.Config, error) {
	settings, err := configs.LoadClient("")
	if err != nil {
		return nil, client.Config{}, err
	}
	if opts.Redundant {
		settings.Paths = "redundant"
	}
	if opts.Bootstrap != "" {
		settings.Bootstrap = opts.Bootstrap
	}
	switch {
	case opts.Port != 0 && opts.Bootstrap == "ssh":
		return nil, client.Config{}, errors.New(
			"-p names the port of a daemon that is reached directly, and --bootstrap ssh is to reach none")
	case opts.Port != 0:
		settings.Bootstrap = "direct"
	}
	log := opts.log()
	t, err := findTarget(ctx, name, opts, settings.Port)
	if err != nil {
		return nil, client.Config{}, err
	}
	if opts.Inspect != nil {
		t.Unknown = sshconfig.Refuse
	}
	cfg := client.Config{
		Log: log, Software: Software(),
		Paths:  settings.Paths,
		Prefer: settings.Interfaces.Prefer, Avoid: settings.Interfaces.Avoid,
		KeepaliveIdle: settings.KeepaliveIdle.Duration, Compression: settings.Compression,
	}
	if !t.Local {
		cfg.WebHost = t.Hostname
	}
	cfg.Machine, _ = os.Hostname() // unknown, it is not told
	a := &Access{Settings: settings, Target: t, Log: log, inspect: opts.Inspect}
	a.WasKnown = !t.Local && t.ForwardAgent && t.IsKnown()
	return a, cfg, nil
}

// reach calls f with an access that is made as the setting bootstrap says.
func (a *Access) reach(ctx context.Context, cfg client.Config, f Call) error {
	t := a.Target
	a.before, _ = recall(t.server())
	cfg.TCPFirst = a.before.NoUDP
	if a.inspect == nil && a.Settings.Bootstrap != "ssh" {
		cfg.LoggedIn = a.learn
	}
	switch a.Settings.Bootstrap {
	case "direct":
		return a.byKey(ctx, cfg, f)
	case "ssh":
		return a.bySSH(ctx, cfg, f)
	}
	if a.before.Port != 0 && !a.before.NoLogin {
		t.DaemonPort = a.before.Port
		return a.withTunnel(ctx, func(ctx context.Context) error {
			cfg.Tunnel = a.Tunnel
			return a.byKey(ctx, cfg, f)
		})
	}
	found, stop := a.findDaemon(ctx, cfg)
	defer stop()
	learn := cfg.LoggedIn
	cfg.LoggedIn = func(by client.Transport, server netip.AddrPort, direct error) {
		stop()
		if learn != nil {
			learn(by, server, direct)
		}
	}
	err := a.bySSH(ctx, cfg, f)
	var login *bootstrap.LoginError
	if !errors.Is(err, bootstrap.ErrNoSSH) && !(errors.As(err, &login) && login.Unreachable()) {
		return err
	}
	if login != nil {
		if none := <-found; errors.As(none, new(*client.UnreachableError)) && ctx.Err() == nil {
			a.Log.Debug("no daemon answers", "error", none)
			return nothingAnswers(login, t.DaemonPort)
		}
	}
	direct := a.byKey(ctx, cfg, f)
	switch {
	case login != nil && errors.Is(direct, client.ErrNoKeys):
		return login
	case login != nil && errors.As(direct, new(*client.UnreachableError)):
		a.Log.Debug("no daemon answers", "error", direct)
		return nothingAnswers(login, t.DaemonPort)
	}
	return direct
}

// findDaemon looks whether a daemon answers at the target's port, and sends why not, or nil. It proves nothing to one.
func (a *Access) findDaemon(ctx context.Context, cfg client.Config) (found <-chan error, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	t := *a.Target // with the port that is known before a grant
	cfg.Resolve, cfg.CheckHost = t.resolve, func(ssh.PublicKey) error { return nil }
	result := make(chan error, 1)
	go func() {
		select {
		case <-time.After(bootstrap.KnockAfter):
		case <-ctx.Done():
			result <- ctx.Err()
			return
		}
		c := client.New(cfg)
		defer c.Close()
		result <- c.Find(ctx)
	}()
	return result, stop
}

// withTunnel calls f while a.Tunnel is one that can be used.
func (a *Access) withTunnel(ctx context.Context, f func(context.Context) error) error {
	// These signals may be for the remote program. At a question of ssh, they end qt, and that ssh.
	ctx, stop := UntilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	t := a.Target
	a.Tunnel = &bootstrap.SSH{
		Host: t.Name, Name: t.Hostname, Args: t.sshArgs, Pipe: t.Piped, Say: sayForSSH, Log: a.Log,
	}
	if !t.Piped && !t.Shared {
		sshd := *t
		sshd.DaemonPort = t.Port
		a.Tunnel.Addresses = sshd.resolve
	}
	if !t.unattended {
		if tty, err := terminal.OpenTTY(); err == nil {
			defer tty.Close()
			a.Tunnel.Dialog = func() (bootstrap.Dialog, error) { return terminal.NewDialog(tty) }
		}
	}
	defer func() {
		a.Tunnel.Close()
		a.Tunnel = nil
	}()
	err := f(ctx)
	var none *bootstrap.StartError
	if errors.As(err, &none) {
		if ctx.Err() != nil { // ssh has seen the signal too, and was quicker
			return context.Cause(ctx)
		}
		var login *bootstrap.LoginError
		var denied *client.DeniedError
		if errors.As(err, &login) && login.Unreachable() && errors.As(err, &denied) {
			return denied // the daemon has answered, and there may be no sshd
		}
		failed := new(client.TunnelError)
		if errors.As(err, &failed) && failed.Unreachable && login != nil && login.Unreachable() {
			return nothingAnswers(login, t.DaemonPort)
		}
		return none.Err
	}
	return err
}

// bySSH calls f with an access over ssh, from which a session moves to the daemon's own port.
func (a *Access) bySSH(ctx context.Context, cfg client.Config, f Call) error {
	return a.withTunnel(ctx, func(ctx context.Context) error {
		cfg.Tunnel, cfg.TunnelFirst = a.Tunnel, true
		cfg.CheckHost = a.checkGranted(a.Tunnel)
		cfg.Resolve = a.resolve
		return a.call(ctx, cfg, f)
	})
}

// checkGranted returns a check that accepts the host key that a grant has brought, unless it is
// revoked: a daemon that was not started again may still have an old key.
func (a *Access) checkGranted(tunnel *bootstrap.SSH) func(ssh.PublicKey) error {
	load := sync.OnceValues(a.Target.LoadKnownHosts)
	return func(key ssh.PublicKey) error {
		if err := tunnel.CheckHost(key); err != nil {
			return err
		}
		known, err := load()
		if err != nil {
			return err
		}
		if err := known.Check(key); errors.As(err, new(*auth.RevokedHostError)) {
			return err
		}
		return nil
	}
}

// resolve returns the addresses of the daemon, at the port that a grant has named, if one has.
func (a *Access) resolve(ctx context.Context) ([]netip.AddrPort, error) {
	t := *a.Target
	if a.Tunnel != nil && a.Tunnel.Port() != 0 {
		t.DaemonPort = a.Tunnel.Port()
	}
	return t.resolve(ctx)
}

func (a *Access) call(ctx context.Context, cfg client.Config, f Call) error {
	if check := cfg.CheckHost; a.inspect != nil {
		cfg.CheckHost = func(key ssh.PublicKey) error {
			err := check(key)
			a.inspect(key, err)
			return err
		}
	}
	a.Client = client.New(cfg)
	defer a.Client.Close()
	return f(ctx, a)
}

// byGrant calls f with access by a grant: it brings address, host key and token.
func (a *Access) byGrant(ctx context.Context, say func(string), cfg client.Config, f Call) error {
	grant, err := bootstrap.NewLocal(ctx, say, cfg.Log)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	cfg.Resolve = grant.Resolve
	cfg.CheckHost = grant.CheckHost
	cfg.KeyTypes = grant.KeyTypes()
	cfg.Token = client.Once(grant.Token())
	return a.call(ctx, cfg, f)
}

// Needs says what ssh needs of the user to log in again, or nothing.
func (a *Access) Needs() string {
	if a.Tunnel == nil {
		return ""
	}
	return a.Tunnel.Needs()
}

// Environment returns the variables for a new session: those of this process that the setting send_env names, as many as
// fit, and then the session's own.
func (a *Access) Environment(own [][2]string) [][2]string {
	var env [][2]string
	left, room := wire.MaxEnvBytes, wire.MaxEnv-len(own)
	for _, v := range own {
		left -= len(v[0]) + len("=") + len(v[1])
	}
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		for _, p := range a.Settings.SendEnv {
			if ok, err := path.Match(p, name); err == nil && ok && len(env) < room && len(v) <= left {
				left -= len(v)
				env = append(env, [2]string{name, value})
				break
			}
		}
	}
	return append(env, own...)
}

// Terminfo returns the compiled entry of the terminal that TERM of an environment names, if this machine knows it and
// not all servers do.
func Terminfo(env [][2]string) []byte {
	term := ""
	for _, v := range env {
		if v[0] == "TERM" {
			term = v[1]
		}
	}
	if terminfo.Common(term) {
		return nil
	}
	b, err := terminfo.Find(term, os.Getenv)
	if err != nil || len(b) > wire.MaxTerminfo {
		return nil
	}
	return b
}

// Software names this program to servers.
func Software() string { return "qt " + version.String() }

// WasReached reports whether it is known how the target was reached without ssh.
func (a *Access) WasReached() bool { return a.before.Port != 0 }
