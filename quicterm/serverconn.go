//go:build linux || darwin

package quicterm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/account"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxAnswers is how many signatures a client may try.
	maxAnswers = 6

	// lingerTime is how long a client has to read the last words that are
	// said to it.
	lingerTime = 3 * time.Second
)

// errDenied is why a client was sent away that has not proven who it is; what
// it wraps is for the log alone.
var errDenied = errors.New("denied")

// A guest is a client's connection.
type guest struct {
	server *Server
	conn   *quic.Conn
	stream *quic.Stream
	link   *carrier.QUIC
	log    *slog.Logger
	read   authorizedKeys

	// Known once it is authenticated:
	software string
	account  *account.Account
	allowed  auth.Permissions
	scope    string
	who      string
}

// serveClient serves a connection until it ends.
func (s *Server) serveClient(ctx context.Context, conn *quic.Conn) {
	defer conn.CloseWithError(0, "")
	stop := context.AfterFunc(ctx, func() { conn.CloseWithError(0, "") })
	defer stop()
	release := func() {}
	if a, ok := conn.Context().Value(admissionKey{}).(*admission); ok {
		release = a.release
	}
	defer release()
	g := &guest{server: s, conn: conn, log: s.log.With("client", conn.RemoteAddr().String())}
	err := g.serve(ctx, release)
	if err != nil && !goneAway(err) {
		s.deniedLog.warn(time.Now(), g.log, "client refused", "error", err)
	}
}

// goneAway reports whether an error says only that the client has hung up, or
// has not cared to finish the handshake.
func goneAway(err error) bool {
	var closed *quic.ApplicationError
	var idle *quic.IdleTimeoutError
	var handshake *quic.HandshakeTimeoutError
	var transport *quic.TransportError
	return errors.As(err, &closed) || errors.As(err, &idle) || errors.As(err, &handshake) ||
		errors.As(err, &transport) && transport.Remote
}

func (g *guest) serve(ctx context.Context, authenticated func()) error {
	ctx, cancel := context.WithTimeout(ctx, g.server.cfg.Settings.AuthTimeout.Duration)
	defer cancel()
	stream, err := g.conn.AcceptStream(ctx)
	if err != nil {
		return fmt.Errorf("no stream: %w", err)
	}
	g.stream, g.link = stream, carrier.AcceptQUIC(g.conn, stream)
	deadline, _ := ctx.Deadline()
	stream.SetDeadline(deadline) // for writing too: it may not let us
	m, err := wire.Read(stream, wire.MaxMessage)
	if err != nil {
		return fmt.Errorf("first message: %w", err)
	}
	if m.Type == wire.TypeResume {
		return g.resume(stream, m, authenticated)
	}
	// Early data may be what somebody else has seen and sends once more. Only a
	// Resume has a proof that is good for one time.
	select {
	case <-g.conn.HandshakeComplete():
	case <-g.conn.Context().Done():
		return fmt.Errorf("handshake: %w", context.Cause(g.conn.Context()))
	case <-ctx.Done():
		return fmt.Errorf("handshake: %w", ctx.Err())
	}
	request, err := g.authenticate(stream, m)
	if err != nil {
		g.lastWords(&wire.Denied{})
		return fmt.Errorf("%w: %w", errDenied, err)
	}
	authenticated()
	stream.SetDeadline(time.Time{})
	g.log.Info("client authenticated", "as", g.account.Name, "by", g.who, "software", g.software)
	for {
		if done, err := g.handle(request); done || err != nil {
			return err
		}
		request, err = wire.Read(stream, wire.MaxMessage)
		if errors.Is(err, io.EOF) {
			return nil // it has what it came for
		}
		if err != nil {
			return fmt.Errorf("request: %w", err)
		}
	}
}

// lastWords says something to a client that is sent away, and waits for it to
// go.
func (g *guest) lastWords(v wire.Body) {
	g.stream.SetWriteDeadline(time.Now().Add(lingerTime))
	if err := wire.Send(g.link, v); err != nil {
		return
	}
	g.linger()
}

// linger gives a client time to read what was said, and to hang up.
func (g *guest) linger() {
	g.link.CloseWrite()
	select {
	case <-g.conn.Context().Done():
	case <-time.After(lingerTime):
	}
}

// authenticate talks with a client until it has proven who it is, and returns
// its request. The client may send that ahead.
func (g *guest) authenticate(stream *quic.Stream, m wire.Message) (wire.Message, error) {
	var hello wire.Hello
	if err := m.Decode(&hello); err != nil {
		return m, err
	}
	if len(hello.Keys) > wire.MaxKeys {
		return m, fmt.Errorf("offer of %d keys", len(hello.Keys))
	}
	g.software = hello.Software[:min(len(hello.Software), wire.MaxSummary)]
	var request *wire.Message
	known := false
	for answers := 0; ; {
		m, err := wire.Read(stream, wire.MaxMessage)
		if err != nil {
			return m, fmt.Errorf("authentication: %w", err)
		}
		switch m.Type {
		case wire.TypeTicket:
			var ticket wire.Ticket
			if err := m.Decode(&ticket); err != nil {
				return m, err
			}
			if err := g.redeem(ticket.Ticket); err != nil {
				return m, err
			}
			known = true
		case wire.TypeAnswer:
			var answer wire.Answer
			if err := m.Decode(&answer); err != nil {
				return m, err
			}
			err := g.checkAnswer(&hello, &answer)
			if known = err == nil; !known {
				if answers++; answers >= maxAnswers {
					return m, fmt.Errorf("%d answers that do not do, the last: %w", answers, err)
				}
				g.log.Debug("answer does not do", "error", err)
				if err := g.offer(&hello); err != nil {
					return m, err
				}
			}
		default:
			if request != nil {
				return m, errors.New("a second request before authentication")
			}
			request = &m
			if !known && answers == 0 && len(hello.Keys) > 0 {
				// It has not tried yet: tell it what would do.
				answers++
				if err := g.offer(&hello); err != nil {
					return m, err
				}
			}
		}
		if known && request != nil {
			return *request, nil
		}
	}
}

// redeem takes a ticket as proof.
func (g *guest) redeem(ticket []byte) error {
	uid, err := g.server.tickets.Redeem(time.Now(), ticket)
	if err != nil {
		return err
	}
	if g.account, err = account.LookupID(uid); err != nil {
		return fmt.Errorf("ticket of user id %d: %w", uid, err)
	}
	if g.account.Expired(time.Now()) {
		return fmt.Errorf("account %s has expired", g.account.Name)
	}
	g.who = "ticket"
	return nil
}

// offer tells the client which of its keys would do, or sends it away.
func (g *guest) offer(hello *wire.Hello) error {
	var offer wire.Offer
	a, err := g.lookup(hello.User)
	if err != nil {
		return err
	}
	for _, blob := range hello.Keys {
		if _, _, err = g.authorize(a, blob); err == nil {
			offer.Keys = append(offer.Keys, blob)
		}
	}
	if len(offer.Keys) == 0 {
		return fmt.Errorf("none of %d keys does for %s, the last: %w", len(hello.Keys), hello.User, err)
	}
	return wire.Send(g.link, &offer)
}

// lookup returns the account that a client asks for, if this server serves it.
func (g *guest) lookup(user string) (*account.Account, error) {
	a, err := account.Lookup(user)
	if err != nil {
		return nil, fmt.Errorf("account %.64q: %w", user, err)
	}
	if !g.server.anybody && a.UID != g.server.self.UID {
		return nil, fmt.Errorf("account %s: this daemon serves %s only", a.Name, g.server.self.Name)
	}
	if a.Expired(time.Now()) {
		return nil, fmt.Errorf("account %s has expired", a.Name)
	}
	return a, nil
}

// checkAnswer takes a signature as proof.
func (g *guest) checkAnswer(hello *wire.Hello, answer *wire.Answer) error {
	if !slices.ContainsFunc(hello.Keys, func(k []byte) bool { return bytes.Equal(k, answer.Key) }) {
		return errors.New("answer by a key that was not offered")
	}
	a, err := g.lookup(hello.User)
	if err != nil {
		return err
	}
	key, allowed, err := g.authorize(a, answer.Key)
	if err != nil {
		return err
	}
	if err := auth.VerifyUser(g.conn.ConnectionState().TLS, hello.User, key, answer.Signature, allowed.Verified); err != nil {
		return err
	}
	g.account, g.allowed, g.scope = a, *allowed, allowed.Scope(key)
	g.who = ssh.FingerprintSHA256(key)
	return nil
}

// authorize looks a key up in the account's files.
func (g *guest) authorize(a *account.Account, blob []byte) (ssh.PublicKey, *auth.Permissions, error) {
	key, err := auth.ParseUserKey(blob)
	if err != nil {
		return nil, nil, err
	}
	files, failed := g.authorizedKeys(a)
	for _, content := range files {
		allowed, err := auth.Authorize(content, key, g.address(), time.Now())
		if err == nil {
			return key, allowed, nil
		}
		failed = err
	}
	return nil, nil, failed
}

// authorizedKeys are the contents of an account's files, which are read once for
// each connection: that takes a process and a thread.
type authorizedKeys struct {
	account string
	files   [][]byte
	failed  error // why a key is not authorized that is in none of them
}

func (g *guest) authorizedKeys(a *account.Account) ([][]byte, error) {
	if g.read.account == a.Name {
		return g.read.files, g.read.failed
	}
	g.read = authorizedKeys{account: a.Name, failed: auth.ErrNotAuthorized}
	for _, pattern := range g.server.cfg.Settings.AuthorizedKeysFiles {
		file := strings.NewReplacer("%%", "%", "%h", a.Home, "%u", a.Name).Replace(pattern)
		if !filepath.IsAbs(file) {
			file = filepath.Join(a.Home, file) // as sshd_config(5) has it
		}
		content, err := a.ReadFile(file)
		if err != nil {
			g.read.failed = fmt.Errorf("%w: %w", auth.ErrNotAuthorized, err)
			continue
		}
		g.read.files = append(g.read.files, content)
	}
	return g.read.files, g.read.failed
}

func (g *guest) address() netip.Addr {
	udp, ok := g.conn.RemoteAddr().(*net.UDPAddr)
	if !ok {
		return netip.Addr{}
	}
	return udp.AddrPort().Addr().Unmap()
}

// open says to a holder on whose behalf it is asked.
func (g *guest) open() *wire.Open {
	return &wire.Open{
		Client: fmt.Sprintf("%s@%s", g.account.Name, g.address()),
		Scope:  g.scope,
		NoPTY:  g.allowed.NoPTY,
	}
}

// handle does what an authenticated client asks for. It reports whether the
// client has been served to its end.
func (g *guest) handle(m wire.Message) (done bool, err error) {
	switch m.Type {
	case wire.TypeList:
		return false, wire.Send(g.link, list(g.server.sessions(g.account.UID, g.open())))
	case wire.TypeKill:
		var kill wire.Kill
		if err := m.Decode(&kill); err != nil {
			return false, err
		}
		answer, err := g.kill(kill.Session, m)
		if err != nil {
			return false, wire.Send(g.link, asError(err))
		}
		return false, wire.Write(g.link, answer)
	case wire.TypeAttach:
		var req wire.Attach
		if err := m.Decode(&req); err != nil {
			return false, err
		}
		if err := g.attach(&req, m); err != nil {
			g.log.Warn("no session for client", "error", err)
			g.lastWords(asError(err))
		}
		return true, nil
	}
	return false, wire.Send(g.link, &wire.Error{
		Code: wire.CodeUnknown,
		Text: fmt.Sprintf("the server does not know message %d: it may be older than this client", m.Type),
	})
}

func (g *guest) kill(name string, m wire.Message) (wire.Message, error) {
	e, err := g.server.find(g.account.UID, g.open(), name)
	if err != nil {
		return m, err
	}
	return holder.Ask(e.path, g.account.UID, g.open(), m)
}

// list returns as many descriptions of sessions as a message holds, and how
// many are left out.
func list(entries []entry) *wire.Listing {
	const perMessage = 64 // bytes for what is not a session
	listing, size := new(wire.Listing), perMessage
	for i, e := range entries {
		if size += len(e.state.Info); size > wire.MaxMessage {
			listing.More = len(entries) - i
			break
		}
		listing.Sessions = append(listing.Sessions, e.state.Info)
	}
	return listing
}

// attach finds or starts the session that a request is for, passes the request
// on as it came, and relays until the client or the session ends.
func (g *guest) attach(req *wire.Attach, m wire.Message) error {
	path, err := g.server.findOrCreate(g, req)
	if err != nil {
		return err
	}
	answer, c, err := holder.Carry(path, g.account.UID, g.open(), m)
	if err != nil {
		return err
	}
	return g.relay(answer, c)
}

// resume brings another carrier to a session. Until the holder says yes, it is
// told one message of a fixed form, and the client nothing. One that has tried too
// often is not answered at all: Denied might have it believe that the session is
// gone.
func (g *guest) resume(stream *quic.Stream, m wire.Message, authenticated func()) error {
	var req wire.Resume
	if err := m.Decode(&req); err != nil {
		return err
	}
	if !g.server.resumes.allow(time.Now(), req.ID) {
		return fmt.Errorf("resume: %w", errTooOften)
	}
	answer, c, err := g.server.resume(&req, m)
	if err == nil && answer.Type == wire.TypeDenied {
		c.Close()
		err = errors.New("the holder does not accept the resume")
	}
	if err != nil {
		g.lastWords(&wire.Denied{Boot: holder.BootMark(req.ID)})
		return fmt.Errorf("%w: %w", errDenied, err)
	}
	authenticated()
	stream.SetDeadline(time.Time{})
	return g.relay(answer, c)
}

// asError tells an error to an authenticated client.
func asError(err error) *wire.Error {
	var e *sessionError
	if errors.As(err, &e) {
		return &wire.Error{Code: e.code, Text: e.Error()}
	}
	return &wire.Error{Text: err.Error()}
}
