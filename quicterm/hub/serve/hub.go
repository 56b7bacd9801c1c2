// Package serve is a hub: an embedded NATS server behind one port with HTTPS, the list of who may log in, and the directory
// of the hosts that are there. It sees keys, names of hosts, addresses and numbers of bytes, and opens no door: what is
// relayed is TLS between a client and a daemon.
//
//	front      connections before they log in: their limits, and which login each is; it copies sealed bytes
//	NATS       TLS, WebSockets, subjects and permissions; it listens on a port of the loopback, for front alone
//	login      checks the key of a login, and says which subjects are its own
//	directory  knows the hosts that are there, and answers who asks for them
package serve

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/quicterm/quicterm/quicterm/hub"
)

// Limits of the server.
const (
	// maxLogins bounds the connections: each takes a port of the loopback, of which there are 28 000.
	maxLogins = 25_000

	// maxControlLine bounds a line of NATS' protocol in bytes: the longest is CONNECT, with a hub.Credential.
	maxControlLine = hub.MaxCredential + 2<<10

	// maxUnsent bounds the bytes for a login that it has not taken: those of the windows of its streams together, which are
	// 64 MiB, with what is around them. Who has more is cut off.
	maxUnsent = 96 << 20

	// writeTime is how long a login may take no byte of what is for it, before it is cut off.
	writeTime = 10 * time.Second

	// maxSubscriptions bounds those of a login: a person has one for each stream and for each question.
	maxSubscriptions = 2*hub.MaxStreams + 16

	// pingTime and maxPings say when a connection is dead: after 60 s.
	pingTime = 20 * time.Second
	maxPings = 2

	// startTime bounds how long the server takes to start.
	startTime = 30 * time.Second
)

// A Config says how a hub is served.
type Config struct {
	// Names are the names and addresses in the hub's URL, in small letters and without ports: logins for other hubs are
	// refused.
	Names []string

	// TLS has the certificate. Its protocols must include "http/1.1".
	TLS *tls.Config

	// List is the file that says who may log in (hub.ParseList). It is read again when it has changed.
	List string

	Log *slog.Logger
}

// A Hub serves logins.
type Hub struct {
	config Config
	secret string // proves the hub's own connection
	list   atomic.Pointer[hub.List]

	front     *front
	directory *directory
}

// New returns a hub. It fails if the list cannot be read. It starts nothing.
func New(config Config) (*Hub, error) {
	content, _, err := readList(config.List)
	if err != nil {
		return nil, err
	}
	list, err := hub.ParseList(content)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", config.List, err)
	}
	h := &Hub{config: config, secret: rand.Text()}
	h.list.Store(list)
	h.front = newFront(config.Log)
	h.directory = newDirectory(h)
	return h, nil
}

// Serve serves connections to the listener until ctx ends, or the listener or the server fails. It closes the listener, and
// has ended all connections when it returns.
func (h *Hub) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	engine, err := server.NewServer(h.options())
	if err != nil {
		listener.Close()
		return fmt.Errorf("NATS: %w", err)
	}
	failed := make(chan struct{})
	engine.SetLoggerV2(&engineLog{log: h.config.Log, failed: failed}, false, false, false)
	engine.Start()
	defer func() {
		engine.Shutdown()
		engine.WaitForShutdown()
	}()
	address, own, err := h.attach(engine)
	if err != nil {
		listener.Close()
		return err
	}
	defer own.Close()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { h.watchList(ctx) })
	running.Go(func() {
		select {
		case <-failed:
			cancel()
		case <-ctx.Done():
		}
	})
	err = h.front.serve(ctx, listener, address)
	select {
	case <-failed:
		return errors.New("NATS has failed: the log says why")
	default:
		return err
	}
}

// attach connects the directory to the server, and returns where front finds the server.
func (h *Hub) attach(engine *server.Server) (address netip.AddrPort, own *nats.Conn, err error) {
	if !engine.ReadyForConnections(startTime) {
		return address, nil, errors.New("NATS does not start")
	}
	if address, err = parsePort(engine.WebsocketURL()); err != nil {
		return address, nil, err
	}
	own, err = nats.Connect("", nats.InProcessServer(engine), nats.Token(h.secret), nats.NoReconnect())
	if err == nil {
		err = h.directory.attach(own)
	}
	if err != nil && own != nil {
		own.Close()
	}
	return address, own, err
}

// options are those of the server: it listens on the loopback for WebSockets, knows no other server, keeps nothing on
// disk, and lets in whom Check does.
func (h *Hub) options() *server.Options {
	return &server.Options{
		ServerName: "hub",
		DontListen: true,
		NoLog:      true,
		NoSigs:     true,

		MaxConn:        maxLogins + 1,
		MaxSubs:        maxSubscriptions,
		MaxSubTokens:   8,
		MaxControlLine: maxControlLine,
		MaxPayload:     hub.MaxMessage,
		MaxPending:     maxUnsent,
		WriteDeadline:  writeTime,
		PingInterval:   pingTime,
		MaxPingsOut:    maxPings,
		AuthTimeout:    loginTime.Seconds(),

		AlwaysEnableNonce:          true,
		CustomClientAuthentication: h,
		NoSystemAccount:            true,
		MaxClosedClients:           1,

		Websocket: server.WebsocketOpts{
			Host:             "127.0.0.1",
			Port:             -1,
			TLSConfig:        h.config.TLS,
			HandshakeTimeout: loginTime,
			AuthTimeout:      loginTime.Seconds(),
		},
	}
}

// An engineLog takes the log of NATS.
type engineLog struct {
	log    *slog.Logger
	failed chan struct{}
	once   sync.Once
}

func (l *engineLog) Noticef(string, ...any) {}
func (l *engineLog) Debugf(string, ...any)  {}
func (l *engineLog) Tracef(string, ...any)  {}

// Warnf and Errorf tell mostly what strangers do wrong.
func (l *engineLog) Warnf(format string, args ...any) {
	l.log.Debug("NATS", "warning", fmt.Sprintf(format, args...))
}

func (l *engineLog) Errorf(format string, args ...any) {
	l.log.Debug("NATS", "error", fmt.Sprintf(format, args...))
}

func (l *engineLog) Fatalf(format string, args ...any) {
	l.log.Error("NATS", "error", fmt.Sprintf(format, args...))
	l.once.Do(func() { close(l.failed) })
}
