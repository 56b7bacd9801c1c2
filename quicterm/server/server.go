//go:build linux || darwin

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/account"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/keyfile"
	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/sshd"
	"github.com/quicterm/quicterm/quicterm/systemd"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Server is a daemon.
type Server struct {
	current    atomic.Pointer[configs.Server] // see settings
	granted    bool
	software   string
	log        *slog.Logger
	base       rundir.Base
	boot       holder.Boot
	names      *account.NameService
	keyFiles   *keyfile.Reader
	sshd       sshd.Daemon
	self       *account.Account
	all        bool // every account is served, not only self
	holders    Holders
	processes  *processes // the holders, if they are processes of this machine
	hostKeys   []*auth.HostKey
	secrets    *secrets
	ticketKeys *ticketKeys
	tls        *tls.Config
	tokens     auth.Tokens
	outside    bool // sessions do not inherit what confines the daemon
	manager    *systemd.Manager
	passed     []systemd.Socket

	rights          *rights
	unauthenticated *unauthenticated
	accounts        *accounts
	rsa             *rate.Limiter // signatures by an RSA host key
	denied          *limiter[resumer]
	refusedLog      *floodLog
	deniedLog       *floodLog
	panicLog        *floodLog

	connections atomic.Int64
	usedAt      atomic.Int64 // uptime

	own        atomic.Pointer[sshd.Policy]  // of the settings
	keySources atomic.Pointer[sshd.Sources] // at the last login

	begun       time.Time
	counts      *counts
	attachments attachments
	census      census
	draining    atomic.Bool
	life        context.Context // ends with run
	stop        func()
	work        sync.WaitGroup // what run waits for beside its tasks

	creating slots // one an account, taken while a new session gets its name
	started  started
	memory   memorySum
}

// New returns a server with the keys that its settings name. It makes those that do not
// exist. It starts nothing.
func New(cfg Config) (*Server, error) {
	names := new(account.NameService)
	self, err := names.Current(context.Background())
	if err != nil {
		return nil, fmt.Errorf("account of user id %d: %w", os.Getuid(), err)
	}
	settings := cfg.Settings.WithDefaults()
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		granted:  cfg.Granted,
		software: cfg.Software,
		log:      log,
		base:     rundir.Base(settings.RuntimeDir),
		boot:     holder.CurrentBoot(),
		names:    names,
		keyFiles: keyfile.NewReader(names),
		self:     self,
		all:      self.UID == 0 && !cfg.Granted,
		holders:  cfg.Holders,
		outside:  cfg.Outside != nil,
		manager:  cfg.Manager,
		passed:   cfg.Passed,

		unauthenticated: newUnauthenticated(settings.MaxUnauthenticated),
		accounts:        newAccounts(settings.MaxSessionsPerUser),
		rsa:             rate.NewLimiter(rsaRate, rsaRate),
		denied:          newLimiter[resumer](deniedRate, deniedResumes),
		refusedLog:      newFloodLog(refusedBurst),
		deniedLog:       newFloodLog(deniedBurst),
		panicLog:        newFloodLog(panicBurst),
	}
	if err := s.adopt(settings); err != nil {
		return nil, err
	}
	s.begun = time.Now()
	s.counts = newCounts(s.begun)
	s.attachments = attachments{server: s, connected: make(map[attachmentID]*attachment)}
	s.census = newCensus()
	s.life, s.stop = context.WithCancel(context.Background())
	if s.memory.limit, err = memoryLimit(settings.MaxBufferTotal); err != nil {
		return nil, err
	}
	s.rights = newRights(s.look)
	if s.holders == nil {
		s.processes = &processes{
			base: s.base, names: names, args: cfg.HolderArgs, log: log, warnings: newFloodLog(accountBurst),
			scopes: cfg.Scopes, outside: cfg.Outside,
		}
		if s.processes.limits, err = scopeLimits(settings); err != nil {
			return nil, err
		}
		if !s.all {
			s.processes.only = self
		}
		s.holders = s.processes
	}
	state, err := s.stateDir()
	if err != nil {
		return nil, err
	}
	if err := rundir.MakeSystemDir(state, 0o700); err != nil {
		return nil, fmt.Errorf("state_dir: %w", err)
	}
	if s.hostKeys, err = loadHostKeys(log, settings.HostKey, s.all, filepath.Join(state, "host_key")); err != nil {
		return nil, err
	}
	if s.secrets, err = loadSecrets(filepath.Join(state, "secrets")); err != nil {
		return nil, err
	}
	withdrawn := "withdrawn"
	if s.granted { // there may be another daemon of root
		withdrawn = "withdrawn_granted"
	}
	s.rights.withdrawn = loadWithdrawals(filepath.Join(state, withdrawn), log)
	s.ticketKeys = &ticketKeys{file: filepath.Join(state, "ticket_keys"), log: log}
	certificate := auth.Certificate(s.hostKeys, s.allowRSA)
	s.tls = &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{wire.ALPN},
		GetCertificate: func(hello *tls.ClientHelloInfo) (chosen *tls.Certificate, err error) {
			err = s.contain(log, func() (err error) { chosen, err = certificate(hello); return err })
			return chosen, err
		},
	}
	s.tls.SetSessionTicketKeys(s.ticketKeys.renew(time.Now()))
	return s, nil
}

// stateDir returns the directory of the keys that outlive the daemon.
func (s *Server) stateDir() (string, error) {
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

// serves reports whether the server serves an account.
func (s *Server) serves(uid uint32) bool { return s.all || uid == s.self.UID }

// IssueToken returns a one-time token, by which a client can log in as the account.
func (s *Server) IssueToken(uid uint32) ([]byte, error) { return s.tokens.Issue(time.Now(), uid) }

// ListenAndServe opens the sockets for UDP and TCP and the one for grants, calls ready, and
// serves until ctx ends or a socket fails. A granted daemon also stops when it is not
// used any more. When ListenAndServe returns, all is closed and only the holders are
// left.
func (s *Server) ListenAndServe(ctx context.Context, ready func()) error {
	grants, err := s.listenGrants() // first: it tells if another daemon runs
	if err != nil {
		return err
	}
	sockets, err := s.newSockets()
	if err != nil {
		grants.close()
		return err
	}
	control, err := s.listenControl()
	if err != nil {
		grants.close()
		sockets.close()
		return err
	}
	grants.address, grants.public = sockets.local, sockets.public
	ready()
	if err := s.manager.Ready(); err != nil {
		s.log.Warn("the service manager does not know that the daemon is ready", "error", err)
	}
	defer s.manager.Stopping()
	watch := func(ctx context.Context) error { return s.manager.Watch(ctx, func() { s.pass(sockets) }) }
	serveControl := func(ctx context.Context) error { return serveHTTP(ctx, control, s.controlling()) }
	return s.run(ctx, grants.serve, sockets.serve, watch, serveControl, s.serveMetrics)
}

// pass returns when it has had each lock that a login needs.
func (s *Server) pass(sockets *sockets) {
	sockets.local()
	s.accounts.of(s.self.UID)
}

// Serve serves clients on the given UDP sockets, which it closes, until ctx ends or a
// socket fails. A granted daemon also stops when it is not used any more.
func (s *Server) Serve(ctx context.Context, sockets ...net.PacketConn) error {
	var tasks []func(context.Context) error
	for _, socket := range sockets {
		tasks = append(tasks, func(ctx context.Context) error { return s.serveQUIC(ctx, socket) })
	}
	return s.run(ctx, tasks...)
}

// run runs the tasks of a daemon, and those that every daemon has.
func (s *Server) run(ctx context.Context, tasks ...func(context.Context) error) error {
	tasks = append(tasks, s.renewTicketKeys, s.attachments.run, s.followAll)
	defer context.AfterFunc(ctx, s.stop)()
	defer s.census.finish(s)
	if s.processes != nil {
		tasks = append(tasks, s.processes.children.run)
	}
	if s.granted {
		s.use()
		tasks = append(tasks, s.awaitDisuse)
	}
	defer s.keyFiles.Close()
	return runAll(ctx, tasks...)
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

// renewTicketKeys makes new connections use the ticket keys of the day, until ctx
// ends.
func (s *Server) renewTicketKeys(ctx context.Context) error {
	ticker := time.NewTicker(renewInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			s.tls.SetSessionTicketKeys(s.ticketKeys.renew(time.Now()))
		}
	}
}

// serveQUIC accepts connections on a socket until ctx ends. It closes the socket.
func (s *Server) serveQUIC(ctx context.Context, socket net.PacketConn) error {
	defer socket.Close()
	listener, err := quic.Listen(socket, quic.ListenConfig{
		TLS:           s.tls,
		ResetKey:      &s.secrets.reset,
		TokenKey:      &s.secrets.addressToken,
		VerifyAddress: s.mustValidate,
		Admit:         s.admit,
		Grow:          s.grow,
	})
	if err != nil {
		return err
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for {
		incoming, err := listener.Accept(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept: %w", err)
		}
		wg.Go(func() { s.countConn(ctx, quicIncoming{incoming}) })
	}
}

// countConn serves a connection until it ends. The daemon is used meanwhile.
func (s *Server) countConn(ctx context.Context, incoming incoming) {
	s.connections.Add(1)
	defer s.use()
	defer s.connections.Add(-1)
	s.contain(s.log, func() error { s.serveConn(ctx, incoming); return nil })
}

// maxUnused is how long a granted daemon runs without a client, a session or a grant.
const maxUnused = 10 * time.Minute

// use records that the daemon is used.
func (s *Server) use() { s.usedAt.Store(uptime()) }

// awaitDisuse returns when the daemon was not used for maxUnused.
func (s *Server) awaitDisuse(ctx context.Context) error {
	ticker := time.NewTicker(maxUnused / 10)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if s.connections.Load() > 0 || len(s.holders.Sessions(s.self.UID)) > 0 {
			s.use()
		}
		if uptime()-s.usedAt.Load() >= int64(maxUnused) {
			s.log.Info("stopping", "reason", fmt.Sprintf("no client and no session for %v", maxUnused))
			return nil
		}
	}
}
