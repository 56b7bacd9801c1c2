//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/floodlog"
	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/machine/systemd"
	"github.com/quicterm/quicterm/quicterm/monitor/access"
	"github.com/quicterm/quicterm/quicterm/monitor/keys"
	"github.com/quicterm/quicterm/quicterm/monitor/ports"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/prometheus"
)

const (
	// deniedBurst is how many lines about refused grants are logged at once, before it is one a second.
	deniedBurst = 64
)

// A Monitor is the half of a daemon that has its rights.
type Monitor struct {
	*Sessions
	current    atomic.Pointer[configs.Server] // see settings
	granted    bool
	software   string
	log        *slog.Logger
	panics     *panics.Container
	base       rundir.Base
	boot       persist.Boot
	names      *account.NameService
	access     *access.Decider
	self       *account.Account
	all        bool             // every account is served, not only self
	processes  *processes.Local // the holders, if they are processes of this machine
	hostKeys   []*auth.HostKey
	secrets    *keys.Secrets
	ticketKeys *keys.Tickets
	web        *keys.Web // the certificate of the page, or nil
	tokens     auth.Tokens
	manager    *systemd.Manager
	passed     []systemd.Conn
	network    atomic.Pointer[privsep.Network] // set by Run
	address    func() netip.AddrPort           // at which programs of this machine reach the daemon, if it listens

	logins     logins
	signatures *access.Signatures
	rights     *access.Rights
	deniedLog  *floodlog.Log

	usedAt atomic.Int64 // uptime

	draining atomic.Bool

	started started
}

// look returns a monitor that can look at the machine, and has made and started nothing: it has no keys and no
// sessions.
func look(ctx context.Context, cfg Config) (*Monitor, error) {
	names := new(account.NameService)
	self, err := names.Current(ctx)
	if err != nil {
		return nil, fmt.Errorf("account of user id %d: %w", os.Getuid(), err)
	}
	settings := cfg.Settings.WithDefaults()
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Monitor{
		granted:  cfg.Granted,
		software: cfg.Software,
		log:      log,
		panics:   panics.New(),
		base:     rundir.Base(settings.RuntimeDir),
		boot:     persist.CurrentBoot(),
		names:    names,
		self:     self,
		all:      self.UID == 0 && !cfg.Granted,
		manager:  cfg.Manager,
		passed:   cfg.Passed,

		deniedLog: floodlog.New(deniedBurst),
	}
	s.access = access.New(names, s.all, s.panics, log)
	return s, s.adopt(settings)
}

// New returns a monitor with the keys that its settings name. It makes those that do not exist. It starts nothing.
func New(cfg Config) (*Monitor, error) {
	s, err := look(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	log := s.log
	s.rights = access.NewRights(s.access.Look)
	if cfg.Recheck != nil {
		s.rights.Look = func(ctx context.Context, _ access.Right) error { return cfg.Recheck(ctx) }
	}
	holders := cfg.Holders
	if holders == nil {
		s.processes = s.localHolders(cfg.Local)
		holders = s.processes
	}
	if s.Sessions, err = newSessions(holders, s.settings, log, s.panics); err != nil {
		return nil, err
	}
	s.outside = cfg.Local.Outside != nil
	state, err := s.stateDir()
	if err != nil {
		return nil, err
	}
	if err := rundir.MakeSystemDir(state, 0o700); err != nil {
		return nil, fmt.Errorf("state_dir: %w", err)
	}
	own := filepath.Join(state, "host_key")
	if s.hostKeys, err = keys.LoadHostKeys(log, s.settings().HostKey, s.all, own); err != nil {
		return nil, err
	}
	if s.secrets, err = keys.LoadSecrets(filepath.Join(state, "secrets")); err != nil {
		return nil, err
	}
	suffix := ""
	if s.granted { // there may be another daemon of root
		suffix = "_granted"
	}
	s.rights.Load(filepath.Join(state, "withdrawn"+suffix), log)
	s.signatures = access.LoadSignatures(filepath.Join(state, "signed_until"+suffix), time.Now(), log)
	s.ticketKeys = keys.NewTickets(filepath.Join(state, "ticket_keys"), log)
	if file := s.settings().WebCertificate; file != "" {
		s.web = keys.NewWeb(file, s.settings().WebKey, log)
	}
	return s, nil
}

func (s *Monitor) localHolders(local processes.Config) *processes.Local {
	local.Base, local.Names, local.Log = s.base, s.names, s.log
	if !s.all {
		local.Only = s.self
	}
	return processes.New(local)
}

// stateDir returns the directory of the keys that outlive the daemon.
func (s *Monitor) stateDir() (string, error) {
	switch dir := os.Getenv("XDG_STATE_HOME"); {
	case s.settings().StateDir != "":
		return s.settings().StateDir, nil
	case s.self.UID == 0:
		return "/var/lib/quicterm", nil
	case dir != "":
		return filepath.Join(dir, "quicterm"), nil
	case s.self.Home == "":
		return "", errors.New("the account has no home directory for the host key: set state_dir")
	}
	return filepath.Join(s.self.Home, ".local/state/quicterm"), nil
}

// serves reports whether the daemon serves an account.
func (s *Monitor) serves(uid uint32) bool { return s.all || uid == s.self.UID }

// IssueToken returns a one-time token, by which a client can log in as the account.
func (s *Monitor) IssueToken(uid uint32) ([]byte, error) {
	return s.tokens.Issue(time.Now(), auth.Grantee{UID: uid})
}

// ListenAndServe opens the sockets for UDP and TCP and the one for grants, calls ready, and has a network serve them
// until ctx ends or a socket fails. A granted daemon also stops when it is not used any more. When ListenAndServe
// returns, all is closed and only the holders are left.
func (s *Monitor) ListenAndServe(ctx context.Context, network privsep.Network, ready func()) error {
	grants, err := s.listenGrants() // first: it tells if another daemon runs
	if err != nil {
		return err
	}
	serves := s.self.Name
	if s.all {
		serves = "all accounts"
	}
	sockets, err := ports.Open(ports.Config{
		Granted: s.granted, Listen: s.settings().Listen, Passed: s.passed, Manager: s.manager, Log: s.log, Serves: serves,
	})
	if err != nil {
		grants.close()
		return err
	}
	control, err := s.listenControl()
	if err != nil {
		grants.close()
		sockets.Close()
		return err
	}
	s.address, grants.public = sockets.Local, sockets.Public
	ready()
	if err := s.manager.Ready(); err != nil {
		s.log.Warn("the service manager does not know that the daemon is ready", "error", err)
	}
	defer s.manager.Stopping()
	watch := func(ctx context.Context) error { return s.manager.Watch(ctx, func() { s.pass(sockets) }) }
	serveSockets := func(ctx context.Context) error { return sockets.Serve(ctx, network.Serve) }
	serveControl := func(ctx context.Context) error { return prometheus.ServeHTTP(ctx, control, s.controlling()) }
	return s.Run(ctx, network, grants.serve, serveSockets, watch, serveControl, s.serveMetrics, s.serveWeb)
}

// pass returns when it has had each lock that a login needs.
func (s *Monitor) pass(sockets *ports.Sockets) {
	sockets.Local()
	s.accounts.asks.Of(processes.Asker{UID: s.self.UID})
}

// Run runs tasks of a daemon, and those that every daemon has, until ctx ends or one of them returns.
func (s *Monitor) Run(ctx context.Context, network privsep.Network, tasks ...func(context.Context) error) error {
	s.network.Store(&network)
	s.update()
	tasks = append(tasks, network.Run, s.renewTicketKeys, s.readWebCertificate, s.followAll, s.recheck)
	defer context.AfterFunc(ctx, s.stop)()
	defer s.finish()
	if s.processes != nil {
		tasks = append(tasks, s.processes.Run)
	}
	if s.granted {
		s.use()
		tasks = append(tasks, s.awaitDisuse)
	}
	defer s.access.Close()
	defer s.retireSecrets()
	return runAll(ctx, tasks...)
}

// update tells the network half the settings of the moment.
func (s *Monitor) update() {
	if network := s.network.Load(); network != nil {
		(*network).Update(s.state())
	}
}

// clients asks the network half for its clients.
func (s *Monitor) clients(ctx context.Context) (*privsep.Clients, error) {
	if network := s.network.Load(); network != nil {
		return (*network).Clients(ctx)
	}
	return new(privsep.Clients), nil
}

// runAll runs tasks until the first one returns, ends the context of the others, and
// waits for them. It returns the error of the first one.
func runAll(ctx context.Context, tasks ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var first sync.Once
	var err error
	for _, task := range tasks {
		wg.Go(func() {
			taskErr := task(ctx)
			first.Do(func() { err = taskErr; cancel() })
		})
	}
	wg.Wait()
	return err
}

func every(ctx context.Context, interval time.Duration, f func() (done bool)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if f() {
				return nil
			}
		}
	}
}

// renewTicketKeys makes new connections use the ticket keys of the day, until ctx ends.
func (s *Monitor) renewTicketKeys(ctx context.Context) error {
	return every(ctx, keys.RenewInterval, func() bool {
		s.ticketKeys.Renew(time.Now())
		s.update()
		return false
	})
}

// retireSecrets lets the next daemon make new secrets.
func (s *Monitor) retireSecrets() {
	if err := s.secrets.Retire(time.Now()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("the keys of QUIC stay as they are", "error", err)
	}
}

// processStart is when this process began.
var processStart = time.Now()

// uptime returns for how long this process has run, in nanoseconds. Unlike the time of day, nobody sets it.
func uptime() int64 { return int64(time.Since(processStart)) }

func (s *Monitor) use() { s.usedAt.Store(uptime()) }

// awaitDisuse returns when the daemon was not used for MaxUnused.
func (s *Monitor) awaitDisuse(ctx context.Context) error {
	return every(ctx, MaxUnused/10, func() bool {
		clients, err := s.clients(ctx)
		if err == nil {
			s.usedAt.Store(max(s.usedAt.Load(), uptime()-int64(clients.Unused)))
		}
		if err != nil || clients.Connections > 0 || len(s.holders.Sessions(s.self.UID)) > 0 {
			s.use()
		}
		if uptime()-s.usedAt.Load() < int64(MaxUnused) {
			return false
		}
		s.log.Info("stopping", "reason", fmt.Sprintf("no client and no session for %v", MaxUnused))
		return true
	})
}
