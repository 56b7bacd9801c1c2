// Package client is the near end of terminal sessions: it logs in to a server, attaches to a
// session, and keeps that connected while networks change.
//
// A [Client] stands for one server and one user. [Client.Attach] opens a [Session], whose Run
// writes the program's output to [Streams] until the program ends; Write and the other
// methods of the session send input. List, Kill, Rename, Clear and Revoke are for the sessions of the
// account, Enroll and Keys for who may log in; examine.go is for qt doctor.
//
// Errors:
//
//	[ErrNoKeys], [ErrBusy], *[DeniedError]      no login
//	*[UnreachableError], *[TunnelError]         no server
//	*[BrokenOffError]                           no answer to a request, which may have been done
//	[ErrGone], [ErrLeft], [ErrLost],            the end of a session's Run,
//	*[DisplacedError], *[WithdrawnError]        without that of its program
//	*[wire.Error]                               the server's refusal
//
// and what Config.CheckHost and Config.Resolve return, wrapped.
//
// The package knows no terminal. It has the goroutines and the sockets; what to do about the
// network is decided by package migrate, and what to send by package session. Carriers come
// from a dialer for each transport: quicdialer.go and streamdialer.go.
package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Config says which server a [Client] talks to, and as which user. Resolve, CheckHost, and
// Keys, Token or Tunnel are required; everything else has a default.
type Config struct {
	Log      *slog.Logger // nil discards
	Software string       // name and version, told to the server
	Machine  string       // what this machine calls itself, told to clients whose session this one takes over

	// Resolve returns the server's addresses, best first, for QUIC and TCP. It is called again when a session looks
	// for other paths: addresses may change while it lasts. It may block until a Tunnel has told the port.
	Resolve func(ctx context.Context) ([]netip.AddrPort, error)

	// CheckHost returns nil if a server with this key may be trusted, else why not. Any goroutine may call it.
	CheckHost func(key ssh.PublicKey) error
	// KeyTypes are the types of keys to ask the server for, best first.
	KeyTypes []string

	// User is the account on the server, and Keys are the keys that may prove the user. A
	// Token takes the place of both: it returns one for each login.
	User  string
	Keys  []*auth.UserKey
	Token func(ctx context.Context) ([]byte, error)
	// OneByOne offers the keys one after the other, each for a round trip, until the server
	// accepts one: for a server that was not known before, and is not to learn them all.
	OneByOne bool

	// Tunnel is another way to log in, or nil. It is used if no server has answered by QUIC or TCP within a second,
	// and if none lets the user in. With TunnelFirst it is the only way to log in, and a session moves from there.
	Tunnel      Tunnel
	TunnelFirst bool

	// TCPFirst dials TCP together with QUIC, and not only when that has not answered for a
	// moment: UDP is known to be blocked.
	TCPFirst bool

	// NoUDP says that the network carries no UDP, as that of a browser.
	NoUDP bool

	// WebHost is the server's name, whose port of HTTPS is dialed when the server does not answer by TCP: the daemon may
	// serve a page there. Empty if it is not to be dialed.
	WebHost string

	// LoggedIn is called after each login, with the transport by which the answer has come and, unless that is SSH, the
	// address of the server; with SSH, direct says why a login by QUIC and TCP has failed, if it has. Nil means nothing.
	LoggedIn func(by Transport, server netip.AddrPort, direct error)

	// Waiting is called when the server has not answered for two seconds. Nil means nothing.
	Waiting func()

	// Paths is how many paths a session has: "failover", "standby", "redundant" or "aggregate", as the setting of that
	// name says. Any other name means "failover".
	Paths string
	// Prefer and Avoid are patterns of names of network interfaces, see path.Match. Prefer has the best one first;
	// those of Avoid are used only if no other works.
	Prefer, Avoid []string
	// KeepaliveIdle is the time between packets that keep an idle path open. The default is 25 s.
	KeepaliveIdle time.Duration
	// Compression is when bulk data is compressed, in both directions: "off", "on" (if that makes it
	// shorter) or "auto", the default (if the path is slower than compression).
	Compression string

	// Network is what is between here and the server. Nil means the network of this machine; a page has none.
	Network Network
}

// A Client makes connections to one server. Close closes what it keeps of them; sessions that are attached live on.
type Client struct {
	cfg     Config
	network Network
	dialers map[migrate.Transport]dialer

	mu   sync.Mutex
	kept *loggedIn // the connection of the last request, or nil
}

// Once returns a token for the first login. The server denies any other.
func Once(token []byte) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return token, nil }
}

// New returns a client. It connects to nothing yet.
func New(cfg Config) *Client {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Resolve == nil {
		cfg.Resolve = func(context.Context) ([]netip.AddrPort, error) {
			return nil, errors.New("the client has no way to resolve the server's name")
		}
	}
	if cfg.CheckHost == nil {
		cfg.CheckHost = func(ssh.PublicKey) error { return errors.New("the client has no way to check host keys") }
	}
	if cfg.Network == nil {
		cfg.Network = system{}
	}
	cfg.TunnelFirst = cfg.TunnelFirst && cfg.Tunnel != nil
	return &Client{cfg: cfg, network: cfg.Network, dialers: newDialers(cfg)}
}

var (
	// ErrNoKeys means that there is no key or token to prove the user with.
	ErrNoKeys = errors.New("no keys to prove who you are")
	// ErrBusy means that too many clients are logging in to the server, and have been for busyTime.
	ErrBusy = errors.New("the server lets no more clients log in at once (max_unauthenticated)")
)

// A DeniedError means that the server does not accept the proof of the user.
type DeniedError struct {
	// Failed says why keys that the server might have accepted were not used, or is nil.
	Failed error
}

func (e *DeniedError) Error() string {
	if e.Failed != nil {
		return "permission denied: " + e.Failed.Error()
	}
	return "permission denied"
}

func (e *DeniedError) Unwrap() error { return e.Failed }

// An UnreachableError means that no daemon has answered.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return "no answer: " + e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

// A TunnelError means that the tunnel has brought no answer.
type TunnelError struct {
	Err error
	// Unreachable says that no daemon has answered by QUIC or TCP either.
	Unreachable bool
}

func (e *TunnelError) Error() string { return e.Err.Error() }
func (e *TunnelError) Unwrap() error { return e.Err }

// A BrokenOffError means that the connection was lost before the server has answered: it may
// have done what it was asked, or not.
type BrokenOffError struct{ Err error }

func (e *BrokenOffError) Error() string { return "the server broke off: " + e.Err.Error() }
func (e *BrokenOffError) Unwrap() error { return e.Err }

// List returns the account's sessions on the server, the last to change first. If there are
// very many, it returns the first of them, and how many more there are.
func (c *Client) List(ctx context.Context) (infos []wire.Info, more int, err error) {
	m, err := c.ask(ctx, &wire.List{})
	if err != nil {
		return nil, 0, err
	}
	var listing wire.Listing
	if err := m.Decode(&listing); err != nil {
		return nil, 0, err
	}
	for _, raw := range listing.Sessions {
		info, err := wire.DecodeInfo(raw)
		if err != nil {
			return nil, 0, fmt.Errorf("session in listing: %w", err)
		}
		infos = append(infos, info)
	}
	return infos, listing.More, nil
}

// maxKilled bounds the sessions of a request to end some: the server waits for as many at a time.
const maxKilled = 64

// Kill ends sessions, given by their names or the starts of their ids. It returns an error, or nil, for each of them.
func (c *Client) Kill(ctx context.Context, names ...string) (errs []error) {
	for len(names) > 0 {
		some := names[:min(len(names), maxKilled)]
		answer, err := c.ask(ctx, &wire.Kill{Session: some[0], Others: some[1:]})
		var killed wire.Killed
		switch {
		case err == nil && answer.Decode(&killed) == nil && len(killed.Errors) == len(some):
			for _, refusal := range killed.Errors {
				if err = nil; refusal.Text != "" {
					err = &refusal
				}
				errs = append(errs, err)
			}
		case err != nil && !errors.As(err, new(*wire.Error)): // the request has failed
			errs = append(errs, slices.Repeat([]error{err}, len(some))...)
		default: // of the first one alone
			if some = some[:1]; err == nil {
				err = answer.Decode(new(wire.Done))
			}
			errs = append(errs, err)
		}
		names = names[len(some):]
	}
	return errs
}

// Rename gives a session another name.
func (c *Client) Rename(ctx context.Context, session, name string) error {
	return c.request(ctx, &wire.Rename{Session: session, Name: name}, &wire.Done{})
}

// Clear makes a session forget the output that its clients have had.
func (c *Client) Clear(ctx context.Context, name string) (cleared wire.Cleared, err error) {
	err = c.request(ctx, &wire.Clear{Session: name}, &cleared)
	return cleared, err
}

// Revoke takes access from the clients that have logged in with the key that has a SHA-256,
// or from all if sum is nil, and removes the key if it is enrolled, and those that it has enrolled.
func (c *Client) Revoke(ctx context.Context, sum []byte) (revoked wire.Revoked, err error) {
	err = c.request(ctx, &wire.Revoke{Key: sum, All: sum == nil}, &revoked)
	return revoked, err
}

// Enroll lets a further key log in to the account, and returns when that ends, or zero.
func (c *Client) Enroll(ctx context.Context, req *wire.Enroll) (expires time.Time, err error) {
	var enrolled wire.Enrolled
	if err := c.request(ctx, req, &enrolled); err != nil || enrolled.Expires == 0 {
		return time.Time{}, err
	}
	return time.Unix(enrolled.Expires, 0), nil
}

// Keys returns the enrolled keys of the account, the first one first.
func (c *Client) Keys(ctx context.Context) ([]wire.EnrolledKey, error) {
	var keys wire.Keys
	err := c.request(ctx, &wire.ListKeys{}, &keys)
	return keys.Keys, err
}

// request asks the server for something that is complete with the answer.
func (c *Client) request(ctx context.Context, v, into wire.Body) error {
	answer, err := c.ask(ctx, v)
	if err != nil {
		return err
	}
	return answer.Decode(into)
}

// ask returns the answer to a request.
func (c *Client) ask(ctx context.Context, v wire.Body) (wire.Message, error) {
	m, err := wire.New(v)
	if err != nil {
		return m, err
	}
	l, err := c.login(ctx, m)
	if err != nil {
		return m, err
	}
	answer := l.answer // before another request has the connection
	c.keep(l)
	return answer, nil
}
