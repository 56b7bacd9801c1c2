//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/account"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// closeTimeout bounds how long a client may take to read the last message and to
// close the connection.
const closeTimeout = 3 * time.Second

// errDenied is the error of a client that has proven nothing. The client is only
// told Denied; the error that is wrapped with this one goes to the log.
var errDenied = errors.New("denied")

// A conn is the connection of a client.
type conn struct {
	server   *Server
	incoming *quic.Incoming
	carrier  *quic.Conn
	log      *slog.Logger
	keys     authorized

	// Set by authenticate:
	software string
	account  *account.Account
	allowed  auth.Permissions
	scope    string // see wire.Open
	proof    string // see Log in the package's documentation
}

// serveConn serves a connection until it ends.
func (s *Server) serveConn(ctx context.Context, incoming *quic.Incoming) {
	defer incoming.Close()
	stop := context.AfterFunc(ctx, func() { incoming.Close() })
	defer stop()
	release := releaseFunc(incoming.Context())
	defer release()
	c := &conn{server: s, incoming: incoming, log: s.log.With("client", incoming.RemoteAddr().String())}
	err := c.serve(ctx, release)
	if err != nil && !quic.PeerGone(err) {
		s.deniedLog.warn(time.Now(), c.log, "client refused", "error", err)
	}
}

// serve serves a client. It calls authenticated when the client has proven who it
// is, which must be within the setting auth_timeout.
func (c *conn) serve(ctx context.Context, authenticated func()) error {
	ctx, cancel := context.WithTimeout(ctx, c.server.settings.AuthTimeout.Duration)
	defer cancel()
	var err error
	if c.carrier, err = c.incoming.Conn(ctx); err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	c.carrier.SetDeadline(deadline) // writes block too if the client does not read
	first, err := wire.Read(c.carrier, wire.MaxMessage)
	if err != nil {
		return fmt.Errorf("first message: %w", err)
	}
	if first.Type == wire.TypeResume {
		return c.resume(first, authenticated)
	}
	// Early data may be a replay. Only a Resume has a proof that is good once.
	select {
	case <-c.carrier.HandshakeComplete():
	case <-c.incoming.Context().Done():
		return fmt.Errorf("handshake: %w", context.Cause(c.incoming.Context()))
	case <-ctx.Done():
		return fmt.Errorf("handshake: %w", ctx.Err())
	}
	request, err := c.authenticate(ctx, first)
	if err != nil {
		c.sendLast(&wire.Denied{})
		return fmt.Errorf("%w: %w", errDenied, err)
	}
	authenticated()
	c.carrier.SetDeadline(time.Time{})
	c.log.Info("client authenticated", "account", c.account.Name, "proof", c.proof, "software", c.software)
	c.log = c.server.log.With("client", c.account.Name+"@"+c.incoming.RemoteAddr().String())
	return c.serveRequests(c.incoming.Context(), request)
}

// serveRequests answers the requests of an authenticated client, until one makes the
// connection a carrier or the client ends its side.
func (c *conn) serveRequests(ctx context.Context, request wire.Message) error {
	for {
		if done, err := c.handle(ctx, request); done || err != nil {
			return err
		}
		var err error
		request, err = wire.Read(c.carrier, wire.MaxMessage)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("request: %w", err)
		}
	}
}

// sendLast sends the last message of the connection and waits until the client
// closes it.
func (c *conn) sendLast(v wire.Body) {
	c.carrier.SetWriteDeadline(time.Now().Add(closeTimeout))
	if err := wire.Send(c.carrier, v); err != nil {
		return
	}
	c.awaitClose()
}

// awaitClose ends the server's side of the stream and waits until the client closes
// the connection, for at most closeTimeout.
func (c *conn) awaitClose() {
	c.carrier.CloseWrite()
	select {
	case <-c.incoming.Context().Done():
	case <-time.After(closeTimeout):
	}
}

// address returns the client's address as it is now.
func (c *conn) address() netip.Addr { return c.incoming.RemoteAddr().Addr() }

// open returns the message that tells a holder on whose behalf it is asked.
func (c *conn) open() *wire.Open {
	return &wire.Open{
		Client: fmt.Sprintf("%s@%s", c.account.Name, c.address()),
		Scope:  c.scope,
		NoPTY:  c.allowed.NoPTY,
	}
}
