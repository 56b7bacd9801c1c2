//go:build linux || darwin

package quicterm

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
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/account"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// ServerConfig says how a [Server] works.
type ServerConfig struct {
	Settings *configs.Server
	Log      *slog.Logger
	Software string // name and version, told to clients

	// Granted marks a daemon that a grant started: it listens on the loopback
	// interface, on the first port that is free, serves nobody but its own
	// account, root included, and ends when nobody has needed it for a while.
	Granted bool

	// HolderArgs are arguments for the processes that hold sessions, behind
	// the one that makes them so.
	HolderArgs []string
}

// A Server is a daemon: it authenticates clients that come over QUIC and relays
// what they say to the holders of their sessions, which it starts and finds but
// does not keep: sessions live on when it ends.
type Server struct {
	cfg        ServerConfig
	log        *slog.Logger
	base       rundir.Base
	self       *account.Account
	anybody    bool // every account is served, not only self
	hostKeys   []*auth.HostKey
	secrets    *secrets
	ticketKeys *ticketKeys // of TLS tickets
	tls        *tls.Config
	tickets    auth.Tickets // of grants
	children   reaper

	admissions *admissions
	resumes    *limiter[wire.SessionID]
	refusedLog *floodLog
	deniedLog  *floodLog

	connections atomic.Int64
	lastUse     atomic.Int64 // Unix nanoseconds

	creating keyedMutex // by account, held while names are given to new sessions
}

// NewServer returns a server with the keys that its settings name. It starts
// nothing.
func NewServer(cfg ServerConfig) (*Server, error) {
	self, err := account.Current()
	if err != nil {
		return nil, fmt.Errorf("account of user id %d: %w", os.Getuid(), err)
	}
	s := &Server{
		cfg:     cfg,
		log:     cfg.Log,
		base:    rundir.Base(cfg.Settings.RuntimeDir),
		self:    self,
		anybody: self.UID == 0 && !cfg.Granted,

		admissions: newAdmissions(cfg.Settings.MaxUnauthenticated),
		resumes:    newLimiter[wire.SessionID](resumeRate, resumeBurst),
		refusedLog: newFloodLog(refusedBurst),
		deniedLog:  newFloodLog(deniedBurst),
	}
	state, err := s.stateDir()
	if err != nil {
		return nil, err
	}
	if s.hostKeys, err = loadHostKeys(cfg.Settings.HostKey, s.anybody, filepath.Join(state, "host_key")); err != nil {
		return nil, err
	}
	if s.secrets, err = loadSecrets(filepath.Join(state, "secrets")); err != nil {
		return nil, err
	}
	s.ticketKeys = &ticketKeys{file: filepath.Join(state, "ticket_keys"), log: s.log}
	s.tls = &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     []string{wire.ALPN},
		GetCertificate: auth.Certificate(s.hostKeys),
	}
	s.tls.SetSessionTicketKeys(s.ticketKeys.renew(time.Now()))
	return s, nil
}

// stateDir returns where keys are kept.
func (s *Server) stateDir() (string, error) {
	switch dir := os.Getenv("XDG_STATE_HOME"); {
	case s.cfg.Settings.StateDir != "":
		return s.cfg.Settings.StateDir, nil
	case s.self.UID == 0:
		return "/var/lib/quicterm", nil
	case dir != "":
		return filepath.Join(dir, "quicterm"), nil
	case s.self.Home == "":
		return "", errors.New("no home directory to keep the host key in: set state_dir")
	}
	return filepath.Join(s.self.Home, ".local/state/quicterm"), nil
}

// sshHostKeys are where sshd has its keys, best first.
var sshHostKeys = []string{
	"/etc/ssh/ssh_host_ed25519_key",
	"/etc/ssh/ssh_host_ecdsa_key",
	"/etc/ssh/ssh_host_rsa_key",
}

func loadHostKeys(files []string, system bool, own string) ([]*auth.HostKey, error) {
	var keys []*auth.HostKey
	optional := false
	if len(files) == 0 && system {
		files, optional = sshHostKeys, true
	}
	for _, file := range files {
		key, err := auth.LoadHostKey(file)
		if optional && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(keys) > 0 {
		return keys, nil
	}
	key, err := auth.LoadOrCreateHostKey(own)
	if err != nil {
		return nil, err
	}
	return []*auth.HostKey{key}, nil
}

// Serve serves until the context ends or, for a granted daemon, nobody has
// needed it for a while. When it returns, nothing of it is left but the holders.
// Once it listens it calls ready.
func (s *Server) Serve(ctx context.Context, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sockets, err := s.listen()
	if err != nil {
		return err
	}
	grants, err := s.listenGrants(sockets[0].LocalAddr().(*net.UDPAddr))
	if err != nil {
		for _, c := range sockets {
			c.Close()
		}
		return err
	}
	var wg sync.WaitGroup
	var failed error
	var once sync.Once
	run := func(f func() error) {
		wg.Go(func() {
			err := f()
			once.Do(func() { failed = err; cancel() })
		})
	}
	for _, socket := range sockets {
		s.log.Info("listening", "address", socket.LocalAddr().String(), "for", s.audience())
		run(func() error { return s.serveQUIC(ctx, socket) })
	}
	run(func() error { return grants.serve(ctx) })
	wg.Go(func() { s.children.run(ctx) })
	wg.Go(func() { s.renewTicketKeys(ctx) })
	if s.cfg.Granted {
		s.touch()
		run(func() error { return s.awaitDisuse(ctx) })
	}
	ready()
	wg.Wait()
	return failed
}

func (s *Server) audience() string {
	if s.anybody {
		return "all accounts"
	}
	return s.self.Name
}

// Ports that a granted daemon takes one of: the usual one, else the range that
// mosh uses, which firewalls may know.
const (
	firstGrantedPort = 60000
	lastGrantedPort  = 61000
)

// listen opens the UDP sockets.
func (s *Server) listen() ([]*net.UDPConn, error) {
	if s.cfg.Granted {
		c, err := listenLoopback()
		return []*net.UDPConn{c}, err
	}
	var sockets []*net.UDPConn
	for _, address := range s.cfg.Settings.Listen {
		c, err := listenUDP(address)
		if err != nil {
			for _, c := range sockets {
				c.Close()
			}
			return nil, err
		}
		sockets = append(sockets, c)
	}
	return sockets, nil
}

func listenUDP(address string) (*net.UDPConn, error) {
	addr, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("address to listen on: %w", err)
	}
	c, err := net.ListenUDP("udp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: another qtd may be running: stop it, or listen on another port", err)
	}
	return c, err
}

func listenLoopback() (*net.UDPConn, error) {
	var failed error
	try := func(port int) *net.UDPConn {
		for _, ip := range []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback} {
			c, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip, Port: port})
			if err == nil {
				return c
			}
			failed = err
		}
		return nil
	}
	if c := try(configs.DefaultPort); c != nil {
		return c, nil
	}
	for port := firstGrantedPort; port <= lastGrantedPort; port++ {
		if c := try(port); c != nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no free UDP port on the loopback interface: %w", failed)
}

// renewTicketKeys has connections use the keys of their day, until the context
// ends.
func (s *Server) renewTicketKeys(ctx context.Context) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.tls.SetSessionTicketKeys(s.ticketKeys.renew(time.Now()))
		}
	}
}

// serveQUIC accepts connections on a socket until the context ends.
func (s *Server) serveQUIC(ctx context.Context, udp *net.UDPConn) error {
	defer udp.Close()
	transport := &quic.Transport{
		Conn:                &carrier.Socket{UDPConn: udp},
		StatelessResetKey:   &s.secrets.Reset,
		TokenGeneratorKey:   &s.secrets.Token,
		VerifySourceAddress: s.doubt,
		ConnContext:         s.admit,
	}
	listener, err := transport.ListenEarly(s.tls, carrier.ServerConfig())
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer transport.Close()
	defer listener.Close()
	for {
		conn, err := listener.Accept(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept: %w", err)
		}
		wg.Go(func() {
			s.connections.Add(1)
			s.serveClient(ctx, conn)
			s.connections.Add(-1)
			s.touch()
		})
	}
}

// disuse is how long a granted daemon waits for somebody to need it.
const disuse = 10 * time.Minute

func (s *Server) touch() { s.lastUse.Store(time.Now().UnixNano()) }

// awaitDisuse returns when there has been no client and no session for a while.
func (s *Server) awaitDisuse(ctx context.Context) error {
	ticker := time.NewTicker(disuse / 10)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if s.connections.Load() > 0 || len(s.socketPaths(s.self.UID)) > 0 {
			s.touch()
		}
		if time.Since(time.Unix(0, s.lastUse.Load())) >= disuse {
			s.log.Info("nobody needs this daemon any more")
			return nil
		}
	}
}
