//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// errDenied is the error of a client that has proven nothing. The client is only
// told Denied; the error that is wrapped with this one goes to the log.
var errDenied = errors.New("denied")

// A conn is the connection of a client.
type conn struct {
	*guest
	server   *Server
	incoming incoming
	carrier  clientCarrier
	askedAt  time.Time // when the client's latest message before its login was read
	log      *slog.Logger
	attempt  uint64 // number of the connection
	earlier  int    // keys of Hellos before the last one, none of which was accepted
	sealed   []byte // of the last Offer: see privsep.Verdicts
	tried    []byte // the last key that was not accepted, for the log

	refusal *wire.Error // what a client is told that has proven its key in vain, or nil

	// Set by authenticate:
	software string
	login    *privsep.Login
	provenAt time.Time

	over   *attachmentID // the client comes back to a session that is over, as far as it says; or nil
	ending ending        // why the connection ends

	receiving bool                            // datagrams are received
	datagrams sync.WaitGroup                  // of receiveDatagrams
	toHolder  atomic.Pointer[carrier.Carrier] // set by relay
}

// serveConn serves a connection until it ends.
func (s *Server) serveConn(ctx context.Context, incoming incoming) {
	defer incoming.Close()
	defer context.AfterFunc(ctx, func() { incoming.Close() })()
	c := &conn{server: s, incoming: incoming, guest: guestOf(incoming.Context()), attempt: s.attempts.Add(1)}
	defer context.AfterFunc(c.pending.evicted, func() { incoming.Refuse() })()
	c.member.Close = func() { incoming.Close() }
	defer s.accounts.leave(c.member)
	if c.local != nil {
		s.accounts.join(c.local.Login.UID, c.member)
	}
	defer c.leave()
	c.log = s.log.With("client", c.from())
	err := s.contain(c.log, c.serve)
	switch {
	case c.pending.evicted.Err() != nil:
		s.counts.refused(errBusy)
		s.refusedLog.Limited(time.Now(), c.log, "client refused", "event", "refuse", "error", errBusy)
	case peerGone(err):
		c.log.Debug("client has gone", "error", err)
	case err != nil && !errors.As(err, new(*panics.Error)):
		s.counts.refused(err)
		log := c.log
		if c.tried != nil && c.login == nil {
			log = privsep.KeyCredential(c.tried).On(log)
		}
		if c.over != nil { // as each client does whose session has ended while it was away, on all its paths at once
			if s.attachments.isLost(*c.over) {
				s.deniedLog.LimitedInfo(time.Now(), log, "client comes back to a session that is over", "event", "gone")
			}
			return
		}
		s.deniedLog.Limited(time.Now(), log, "client refused", "event", "refuse", "error", err)
	}
}

// loginLog returns a log whose lines say who has logged in, from where it does now, and how.
func (c *conn) loginLog() *slog.Logger {
	l := c.login
	return l.Credential.On(c.server.log.With("client", l.Account+"@"+c.from(), "account", l.Account, "uid", l.UID))
}

// kindOfProof returns the value of a metric's label for a proof.
func kindOfProof(proof string) string {
	switch proof {
	case privsep.ProofToken, privsep.ProofSSH:
		return proof
	}
	return proofKey
}

// serve serves a client, which must send its first message within firstMessageTimeout and
// prove who it is within the setting auth_timeout. What it does for the client ends with the connection.
func (c *conn) serve() error {
	ctx, cancel := context.WithTimeout(c.incoming.Context(), c.server.state.Load().AuthTimeout)
	defer cancel()
	first, err := c.firstMessage(ctx)
	if errors.Is(err, io.EOF) { // it has only looked whether a daemon answers
		return fmt.Errorf("%w: %w", errNoHandshake, err)
	}
	if err != nil {
		return err
	}
	defer c.datagrams.Wait()
	defer c.incoming.Close()
	deadline, _ := ctx.Deadline()
	c.carrier.SetDeadline(deadline) // writes block too if the client does not read
	if first.Type == wire.TypeResume {
		return c.resume(first)
	}
	c.server.unauthenticated.speaks(time.Now(), c.pending)
	c.startDatagrams()
	// Early data may be a replay. Only a Resume has a proof that is good once.
	select {
	case <-c.carrier.HandshakeComplete():
	case <-ctx.Done():
		return fmt.Errorf("handshake: %w", context.Cause(ctx))
	}
	request, err := c.authenticate(ctx, first)
	if err != nil {
		if gone := context.Cause(c.incoming.Context()); peerGone(gone) {
			return fmt.Errorf("%w: %w", errDenied, gone)
		}
		c.server.unauthenticated.leave(c.pending)
		c.awaitDenial()
		if c.refusal != nil {
			c.sendLast(c.refusal)
		} else {
			c.sendLast(&wire.Denied{})
		}
		return fmt.Errorf("%w: %w", errDenied, err)
	}
	c.sealed = nil
	c.server.unauthenticated.prove(c.pending)
	if c.local == nil {
		c.server.accounts.join(c.login.UID, c.member)
	}
	c.carrier.SetDeadline(c.provenAt.Add(wire.RequestsTime))
	c.carrier.SetWriteDeadline(time.Time{})
	c.log = c.loginLog()
	c.server.counts.countOf("quicterm_logins_total", "proof", kindOfProof(c.login.Credential.Proof))
	c.log.Info("client logged in", "event", "login", "software", c.software)
	return c.serveRequests(c.incoming.Context(), request)
}

func (c *conn) firstMessage(ctx context.Context) (first wire.Message, err error) {
	ctx, cancel := context.WithTimeout(ctx, firstMessageTimeout)
	defer cancel()
	if c.carrier, err = c.incoming.Carrier(ctx); err != nil {
		return first, err
	}
	deadline, _ := ctx.Deadline()
	c.carrier.SetDeadline(deadline)
	if first, err = wire.Read(c.carrier, wire.MaxMessage); err != nil {
		return first, fmt.Errorf("first message: %w", err)
	}
	c.askedAt = time.Now()
	return first, nil
}

// awaitDenial waits until a multiple of denyInterval has passed since the message that is denied.
func (c *conn) awaitDenial() {
	time.Sleep(denyInterval - time.Since(c.askedAt)%denyInterval)
}

// serveRequests answers the requests of an authenticated client, until one makes the
// connection a carrier, the client ends its side or wire.RequestsTime has passed.
func (c *conn) serveRequests(ctx context.Context, request wire.Message) error {
	for {
		c.member.heard()
		// also the first, which may come after the proof
		if time.Since(c.provenAt) >= wire.RequestsTime {
			return fmt.Errorf("request later than %v after the proof", wire.RequestsTime)
		}
		if done, err := c.handle(ctx, request); done || err != nil {
			return err
		}
		var err error
		request, err = wire.Read(c.carrier, wire.MaxMessage)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.hangUp() // the answer may have come late, and is under way
			return nil
		case err != nil:
			return fmt.Errorf("request: %w", err)
		}
	}
}

// sendLast sends the last message of the connection and waits until the client closes it.
func (c *conn) sendLast(v wire.Body) {
	c.carrier.SetWriteDeadline(time.Now().Add(closeTimeout))
	if err := wire.Send(c.carrier, v); err != nil {
		return
	}
	c.hangUp()
}

// hangUp ends the connection when the client has read everything, as awaitClose does.
func (c *conn) hangUp() {
	c.carrier.SetDeadline(time.Now().Add(closeTimeout))
	var wg sync.WaitGroup
	c.spawn(&wg, c.discard)
	c.awaitClose()
	wg.Wait()
}

// awaitClose ends the server's side of the stream, waits until the client closes the connection, for at most
// closeTimeout, and closes it. Meanwhile another goroutine reads, which is how a connection over TCP notices its end.
func (c *conn) awaitClose() {
	c.carrier.CloseWrite()
	select {
	case <-c.incoming.Context().Done():
	case <-time.After(closeTimeout):
	}
	c.incoming.Close()
}

// maxDiscarded bounds the bytes of a client that are read for nothing.
const maxDiscarded = 64 << 10

// discard reads until the client ends the stream.
func (c *conn) discard() { io.CopyN(io.Discard, c.carrier, maxDiscarded) }

// by returns on whose behalf something is asked.
func (c *conn) by() *privsep.By { return &privsep.By{Login: c.login.ID, Path: c.path()} }

// leave has the monitor forget the client's login.
func (c *conn) leave() {
	if c.login != nil {
		c.server.monitor.Leave(context.Background(), &c.login.ID) // an error is the end of all logins
	}
}

// from says where the client is now, for people: its address and port, "ssh" or "web". Who only claims to be a proxy does
// not hide its own address so, though that does not count for rules about addresses.
func (c *conn) from() string {
	client := c.incoming.RemoteAddr()
	if i, ok := c.incoming.(*tcpIncoming); ok && !client.IsValid() {
		client = i.peer
	}
	return privsep.Path{Client: client, Web: kindOf(c.incoming) == kindWeb}.String()
}
