//go:build linux || darwin

package server

import (
	"bytes"
	"context"
	"crypto"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/floodlog"
	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/prometheus"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Server talks to clients. It has no rights but those that its monitor gives it.
type Server struct {
	monitor *privsep.Calls
	setup   *privsep.Setup
	log     *slog.Logger
	panics  *panics.Container
	state   atomic.Pointer[privsep.State]
	tls     *tls.Config

	unauthenticated *unauthenticated
	accounts        *accounts
	refusedLog      *floodlog.Log
	deniedLog       *floodlog.Log

	processors  processors
	connections atomic.Int64
	attempts    atomic.Uint64 // number of the last connection
	usedAt      atomic.Int64  // uptime

	counts      *counts
	attachments attachments
	ended       atomic.Bool // set when Run ends
}

// NewServer returns a server that does what a monitor lets it. It starts nothing.
func NewServer(m *privsep.Calls, setup *privsep.Setup, log *slog.Logger) (*Server, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		monitor:         m,
		setup:           setup,
		log:             log,
		panics:          panics.New(),
		unauthenticated: newUnauthenticated(setup.MaxUnauthenticated),
		accounts:        newAccounts(setup.MaxSessionsPerUser),
		refusedLog:      floodlog.New(refusedBurst),
		deniedLog:       floodlog.New(deniedBurst),
		counts:          newCounts(setup.Begun, setup.Software),
	}
	s.attachments = attachments{server: s, connected: make(map[attachmentID]*attachment)}
	s.state.Store(new(privsep.State))
	var keys []*auth.HostKey
	for i, c := range setup.Certificates {
		key, err := auth.RemoteHostKey(c.Key, c.Plain, c.Certified, func(message []byte, hash crypto.Hash) ([]byte, error) {
			return s.sign(&privsep.Sign{Key: i, Message: message, Hash: uint(hash)})
		})
		if err != nil {
			return nil, fmt.Errorf("host key: %w", err)
		}
		keys = append(keys, key)
	}
	certificate := auth.Certificate(keys, s.allowRSA)
	s.tls = &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{wire.ALPN},
		GetCertificate: func(hello *tls.ClientHelloInfo) (chosen *tls.Certificate, err error) {
			err = s.contain(log, func() (err error) { chosen, err = certificate(hello); return err })
			return chosen, err
		},
	}
	return s, nil
}

func (s *Server) sign(r *privsep.Sign) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), firstMessageTimeout)
	defer cancel()
	signature, err := s.monitor.Sign(ctx, r)
	if err != nil {
		return nil, err
	}
	return *signature, nil
}

// Update implements [monitor.Network].
func (s *Server) Update(state privsep.State) {
	s.state.Store(&state)
	if len(state.TicketKeys) > 0 {
		s.tls.SetSessionTicketKeys(state.TicketKeys)
	}
}

// Run implements [monitor.Network].
func (s *Server) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { s.ended.Store(true) })()
	return s.attachments.run(ctx)
}

// Serve implements [monitor.Network].
func (s *Server) Serve(ctx context.Context, l privsep.Listener) error {
	switch socket := l.Socket.(type) {
	case *net.UDPConn:
		return s.ServeQUIC(ctx, &quic.Socket{UDPConn: socket})
	case net.Listener:
		switch l.Purpose {
		case privsep.ForMetrics:
			return prometheus.ServeHTTP(ctx, socket, s.watching())
		case privsep.ForWeb:
			return s.ServeWeb(ctx, socket)
		}
		return s.ServeTCP(ctx, socket)
	}
	return fmt.Errorf("a socket of type %T is not served", l.Socket)
}

// Clients implements [monitor.Network].
func (s *Server) Clients(context.Context) (*privsep.Clients, error) {
	return &privsep.Clients{
		Connections: s.connections.Load(), Unused: uptime() - time.Duration(s.usedAt.Load()),
		Sessions: s.attachments.status(),
	}, nil
}

// Metrics implements [monitor.Network].
func (s *Server) Metrics(ctx context.Context) ([]byte, error) {
	s.counts.measuring.Lock()
	defer s.counts.measuring.Unlock()
	numbers, err := s.monitor.Measure(ctx, new(privsep.None))
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	s.measure(numbers)
	err = s.counts.Write(&text)
	return text.Bytes(), err
}

// watching returns what answers those who may see numbers, but no names.
func (s *Server) watching() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		prometheus.ServeMetrics(w, r, s.Metrics)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		prometheus.ServeHealth(w, s.state.Load().NotReady())
	})
	return mux
}

// ServeQUIC accepts connections on a socket until ctx ends. It closes the socket.
func (s *Server) ServeQUIC(ctx context.Context, socket net.PacketConn) error {
	defer socket.Close()
	key, err := resetKey(s.setup.ResetKey, socket.LocalAddr())
	if err != nil {
		return err
	}
	listener, err := quic.Listen(socket, quic.ListenConfig{
		TLS:           s.tls,
		ResetKey:      key,
		TokenKey:      &s.setup.TokenKey,
		VerifyAddress: s.mustValidate,
		Drop:          s.unwanted,
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

// resetKey returns the reset key of a socket. With one key for all, a socket would answer a packet for a connection of
// another socket, which it does not know, and so tell an attacker the reset token (RFC 9000, 21.11).
func resetKey(secret [32]byte, address net.Addr) (*[32]byte, error) {
	key, err := hkdf.Key(sha256.New, secret[:], nil, "quicterm stateless reset at "+address.String(), len(secret))
	if err != nil {
		return nil, err
	}
	return (*[32]byte)(key), nil
}

// countConn serves a connection until it ends. The daemon is used meanwhile.
func (s *Server) countConn(ctx context.Context, incoming incoming) {
	s.connections.Add(1)
	s.processors.did(acceptWork)
	defer func() { s.usedAt.Store(int64(uptime())) }()
	defer s.connections.Add(-1)
	s.contain(s.log, func() error { s.serveConn(ctx, incoming); return nil })
}

// contain calls a function that works for one connection, and returns its error, also if it panics: an error in our
// program ends one connection, not those of all. What QUIC calls in its own goroutines calls contain too.
func (s *Server) contain(log *slog.Logger, f func() error) error { return s.panics.Contain(log, f) }

// contained returns what a function returns, or a value if it panics.
func contained[V any](s *Server, failed V, f func() V) V {
	v := failed
	s.contain(s.log, func() error { v = f(); return nil })
	return v
}

// spawn runs f in a goroutine of the connection, which ends if f panics.
func (c *conn) spawn(wg *sync.WaitGroup, f func()) {
	log := c.log // serve sets another one
	wg.Go(func() {
		if c.server.contain(log, func() error { f(); return nil }) != nil {
			c.incoming.Close()
		}
	})
}
