package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client/proxy"
	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
	"github.com/quicterm/quicterm/quicterm/terminal"
)

// An access is a way to a server, for one command.
type access struct {
	client   *client.Client
	settings *configs.Client
	target   *target
	before   reached        // how the target was reached, or zero
	tunnel   *bootstrap.SSH // nil if ssh is not used
	log      *slog.Logger
	inspect  func(key ssh.PublicKey, err error) // as in options
}

// A call does what a command is for. It may be called again if its error says that the server
// was not reached or not trusted.
type call func(context.Context, *access) error

// withClient calls f with an access to a server, and explains the error of f to the user.
func withClient(ctx context.Context, name string, opts *options, f call) error {
	a, cfg, err := newAccess(ctx, name, opts)
	if err != nil {
		return err
	}
	if a.target.local {
		return explain(a.byGrant(ctx, &bootstrap.Local{Say: sayForSSH}, cfg, f), a.target)
	}
	return explain(a.reach(ctx, cfg, f), a.target)
}

// newAccess returns an access that has no client yet, and what all its clients have in common.
func newAccess(ctx context.Context, name string, opts *options) (*access, client.Config, error) {
	settings, err := configs.LoadClient("")
	if err != nil {
		return nil, client.Config{}, err
	}
	if opts.redundant {
		settings.Paths = "redundant"
	}
	if opts.bootstrap != "" {
		settings.Bootstrap = opts.bootstrap
	}
	if opts.predict != "" {
		settings.Predict = opts.predict
	}
	if opts.escape != "" {
		settings.EscapeChar = opts.escape
	}
	switch {
	case opts.port != 0 && opts.bootstrap == "ssh":
		return nil, client.Config{}, errors.New("-p names the port of a daemon that is reached directly, and --bootstrap ssh is to reach none")
	case opts.port != 0:
		settings.Bootstrap = "direct"
	}
	log := opts.log()
	t, err := findTarget(ctx, name, opts, settings.Port)
	if err != nil {
		return nil, client.Config{}, err
	}
	if opts.inspect != nil {
		t.Unknown = sshconfig.Refuse
	}
	cfg := client.Config{
		Log: log, Software: software(),
		Paths: settings.Paths,
		Prefer: settings.Interfaces.Prefer, Avoid: settings.Interfaces.Avoid,
		KeepaliveIdle: settings.KeepaliveIdle.Duration, Compression: settings.Compression,
	}
	cfg.Machine, _ = os.Hostname() // unknown, it is not told
	if settings.Proxy != "" {
		through, err := proxy.Parse(settings.Proxy)
		if err != nil {
			return nil, client.Config{}, fmt.Errorf("the setting proxy: %w", err)
		}
		cfg.DialTCP = through.Dial
	}
	return &access{settings: settings, target: t, log: log, inspect: opts.inspect}, cfg, nil
}

// reach calls f with an access that is made as the setting bootstrap says.
func (a *access) reach(ctx context.Context, cfg client.Config, f call) error {
	t := a.target
	a.before, _ = recall(t.server())
	if a.before.NoLogin && a.before.Keys != a.hashKeys() {
		a.before.NoLogin = false
	}
	cfg.TCPFirst = a.before.NoUDP
	if a.inspect == nil && a.settings.Bootstrap != "ssh" {
		cfg.LoggedIn = a.learn
	}
	switch a.settings.Bootstrap {
	case "direct":
		return a.byKey(ctx, cfg, f)
	case "ssh":
		return a.bySSH(ctx, cfg, f)
	}
	if a.before.Port != 0 && !a.before.NoLogin {
		t.daemonPort = a.before.Port
		return a.withTunnel(ctx, func(ctx context.Context) error {
			cfg.Tunnel = a.tunnel
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
			a.log.Debug("no daemon answers", "error", none)
			return nothingAnswers(login, t.daemonPort)
		}
	}
	direct := a.byKey(ctx, cfg, f)
	switch {
	case login != nil && errors.Is(direct, client.ErrNoKeys):
		return login
	case login != nil && errors.As(direct, new(*client.UnreachableError)):
		a.log.Debug("no daemon answers", "error", direct)
		return nothingAnswers(login, t.daemonPort)
	}
	return direct
}

// findAfter is how long ssh has to log in before something else looks whether a daemon answers directly: a host where
// nothing answers is then known as soon as ssh knows that.
const findAfter = 500 * time.Millisecond

// findDaemon looks whether a daemon answers at the target's port, and sends why not, or nil. It proves nothing to a daemon.
func (a *access) findDaemon(ctx context.Context, cfg client.Config) (found <-chan error, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	t := *a.target // with the port that is known before a grant
	cfg.Resolve, cfg.CheckHost = t.resolve, func(ssh.PublicKey) error { return nil }
	result := make(chan error, 1)
	go func() {
		select {
		case <-time.After(findAfter):
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

// withTunnel calls f while a.tunnel is one that can be used.
func (a *access) withTunnel(ctx context.Context, f func(context.Context) error) error {
	// These signals may be for the remote program. At a question of ssh, they end qt, and that ssh.
	ctx, stop := untilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	t := a.target
	a.tunnel = &bootstrap.SSH{
		Host: t.Name, Name: t.Hostname, Args: t.sshArgs, Pipe: t.Piped, Say: sayForSSH, Log: a.log,
	}
	if !t.Piped && !t.Shared {
		sshd := *t
		sshd.daemonPort = t.Port
		a.tunnel.Addresses = sshd.resolve
	}
	if tty, err := terminal.OpenTTY(); err == nil {
		defer tty.Close()
		a.tunnel.Dialog = func() (bootstrap.Dialog, error) { return terminal.NewDialog(tty) }
	}
	defer func() {
		a.tunnel.Close()
		a.tunnel = nil
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
		if failed := new(client.TunnelError); errors.As(err, &failed) && failed.Unreachable && login != nil && login.Unreachable() {
			return nothingAnswers(login, t.daemonPort)
		}
		return none.Err
	}
	return err
}

// bySSH calls f with an access over ssh, from which a session moves to the daemon's own port.
func (a *access) bySSH(ctx context.Context, cfg client.Config, f call) error {
	return a.withTunnel(ctx, func(ctx context.Context) error {
		cfg.Tunnel, cfg.TunnelFirst = a.tunnel, true
		cfg.CheckHost = a.checkGranted(a.tunnel)
		cfg.Resolve = a.resolve
		return a.call(ctx, cfg, f)
	})
}

// checkGranted returns a check that accepts the host key that a grant has brought, unless it is
// revoked: a daemon that was not started again may still have an old key.
func (a *access) checkGranted(tunnel *bootstrap.SSH) func(ssh.PublicKey) error {
	load := sync.OnceValues(a.target.loadKnownHosts)
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
func (a *access) resolve(ctx context.Context) ([]netip.AddrPort, error) {
	t := *a.target
	if a.tunnel != nil && a.tunnel.Port() != 0 {
		t.daemonPort = a.tunnel.Port()
	}
	return t.resolve(ctx)
}

// call calls f with a client as cfg says.
func (a *access) call(ctx context.Context, cfg client.Config, f call) error {
	if check := cfg.CheckHost; a.inspect != nil {
		cfg.CheckHost = func(key ssh.PublicKey) error {
			err := check(key)
			a.inspect(key, err)
			return err
		}
	}
	a.client = client.New(cfg)
	defer a.client.Close()
	return f(ctx, a)
}

// byGrant calls f with access by a grant: it brings address, host key and token.
func (a *access) byGrant(ctx context.Context, source bootstrap.Source, cfg client.Config, f call) error {
	grant, err := bootstrap.NewAccess(ctx, source, cfg.Log)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	cfg.Resolve = grant.Resolve
	cfg.CheckHost = grant.CheckHost
	cfg.KeyTypes = grant.KeyTypes()
	cfg.Token = grant.Token()
	return a.call(ctx, cfg, f)
}

// needs says what ssh needs of the user to log in again, or nothing.
func (a *access) needs() string {
	if a.tunnel == nil {
		return ""
	}
	return a.tunnel.Needs()
}

// learn remembers what a login tells of the way to the server, also for a command that ends before a session moves. It
// runs before anything else of the command. direct says why no login without ssh has succeeded before it, if one has
// failed.
func (a *access) learn(by client.Transport, server netip.AddrPort, direct error) {
	now := reached{Server: a.target.server(), Port: server.Port(), NoUDP: by == client.TCP}
	if by == client.SSH {
		now.Port = a.tunnel.Port()
		// A daemon that did not run, or had another port, is dialed the next time.
		dialed := a.before.Port == now.Port && !errors.Is(direct, syscall.ECONNREFUSED)
		switch {
		case a.before.NoLogin && (a.tunnel.Method() != "publickey" || a.before.Method == "publickey"):
			return // unless the user had got in by a password, and now by a key: the daemon may accept that too
		case dialed && !a.before.NoLogin:
			now.NoUDP, now.NoLogin = a.before.NoUDP, true
			now.Method, now.Keys = a.tunnel.Method(), a.hashKeys()
		}
	}
	var known bool
	if now.Key, known = a.daemonKey(); now.Port == 0 || !known {
		return
	}
	if err := remember(now); err != nil {
		a.log.Debug("how the server was reached is not remembered", "error", err)
	}
}

// daemonKey returns the fingerprint of the daemon's host key if only ssh has brought it, and whether the daemon can be
// reached without ssh next time: whether its key is known then.
func (a *access) daemonKey() (fingerprint string, known bool) {
	if a.tunnel == nil || a.tunnel.Port() == 0 {
		return a.before.Key, true
	}
	t, key := *a.target, a.tunnel.Key()
	t.daemonPort = a.tunnel.Port()
	hosts, err := t.loadKnownHosts()
	if err == nil {
		err = hosts.Check(key)
	}
	if _, candidate := acceptable(err); candidate == nil {
		return "", err == nil
	}
	return ssh.FingerprintSHA256(key), true
}

// hashKeys returns a hash of the keys that a login has: those of the agent, and the files as they are.
func (a *access) hashKeys() string {
	h := sha256.New()
	keys, closeAgent := agentKeys(a.target, a.log)
	defer closeAgent()
	for _, k := range keys {
		fmt.Fprintln(h, ssh.FingerprintSHA256(k.Public))
	}
	for _, file := range a.target.Identities {
		if info, err := os.Stat(file); err == nil {
			fmt.Fprintln(h, file, info.ModTime().UnixNano(), info.Size())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
