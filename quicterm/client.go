package quicterm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// ClientConfig says which server a [Client] talks to, and as whom.
type ClientConfig struct {
	Settings *configs.Client
	Log      *slog.Logger
	Software string // name and version, told to the server

	// Resolve returns the server's addresses, best first. It is asked before
	// each attempt: they may change while a session lasts.
	Resolve func(ctx context.Context) ([]netip.AddrPort, error)

	// Network is what there is between here and the server; nil for that of
	// the machine.
	Network Network

	// CheckHost accepts the server's key or says why not.
	CheckHost func(key ssh.PublicKey) error
	// KeyTypes are the types of keys to ask the server for, best first.
	KeyTypes []string

	// User is the account on the server, Keys what to prove with that it is
	// ours. With a Ticket, neither is needed.
	User   string
	Keys   []*auth.UserKey
	Ticket []byte
}

// A Client makes connections to one server.
type Client struct {
	cfg     ClientConfig
	network Network
	tls     *tls.Config
}

// NewClient returns a client. It connects to nothing yet.
func NewClient(cfg ClientConfig) *Client {
	conf := auth.VerifyServer(cfg.CheckHost)
	conf.ServerName = auth.ServerName(cfg.KeyTypes)
	conf.NextProtos = []string{wire.ALPN}
	conf.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	network := cfg.Network
	if network == nil {
		network = system{}
	}
	return &Client{cfg: cfg, network: network, tls: conf}
}

var (
	// ErrNoKeys means that there is nothing to prove with who we are.
	ErrNoKeys = errors.New("no keys to prove who you are")
	// ErrBusy means that the server has too many clients on their way in.
	ErrBusy = errors.New("the server is busy letting others in")
)

// A DeniedError means that the server does not take our word for who we are.
type DeniedError struct {
	// Failed is why keys that might have done were not used, or nil.
	Failed error
}

func (e *DeniedError) Error() string {
	if e.Failed != nil {
		return "permission denied: " + e.Failed.Error()
	}
	return "permission denied"
}

func (e *DeniedError) Unwrap() error { return e.Failed }

// A ServerError is what the server says of a request that it has refused.
type ServerError struct {
	Code wire.Code
	Text string
}

func (e *ServerError) Error() string { return e.Text }

// An UnreachableError means that no daemon has answered.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return "no answer: " + e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

// nextAddress is how long an address has before the next is tried as well
// (RFC 8305, 5).
const nextAddress = 250 * time.Millisecond

// dial connects to the server at whichever of its addresses answers first.
func (c *Client) dial(ctx context.Context) (*carrier.QUIC, error) {
	addrs, err := c.cfg.Resolve(ctx)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, errors.New("the server has no address")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		link *carrier.QUIC
		err  error
	}
	results := make(chan result)
	start := func(addr netip.AddrPort) {
		go func() {
			link, err := c.dialAddr(ctx, addr)
			if err != nil {
				err = fmt.Errorf("%v: %w", addr, err)
			}
			results <- result{link, err}
		}()
	}
	var first *carrier.QUIC
	var failed error
	next, pending := 0, 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for first == nil && (next < len(addrs) || pending > 0) {
		var startNext <-chan time.Time
		if next < len(addrs) {
			startNext = timer.C
		}
		select {
		case <-startNext:
			start(addrs[next])
			next++
			pending++
			timer.Reset(nextAddress)
		case r := <-results:
			pending--
			if r.err == nil {
				first = r.link
				break
			}
			failed = errors.Join(failed, r.err)
			timer.Reset(0)
		}
	}
	cancel()
	for ; pending > 0; pending-- {
		if r := <-results; r.link != nil {
			r.link.Close()
		}
	}
	if first == nil {
		return nil, failed
	}
	return first, nil
}

func (c *Client) dialAddr(ctx context.Context, addr netip.AddrPort) (*carrier.QUIC, error) {
	socket, err := c.network.Listen("")
	if err != nil {
		return nil, err
	}
	return carrier.DialQUIC(ctx, socket, addr, c.tls)
}

// dialWay connects to the server again. If early, it does so before anything was
// heard of it, where it can: what is sent then may be replayed by others.
func (c *Client) dialWay(ctx context.Context, way migrate.Way, early bool) (*carrier.QUIC, error) {
	iface := ""
	if way.Bound {
		iface = way.Interface
	}
	socket, err := c.network.Listen(iface)
	if err != nil {
		return nil, err
	}
	if !early {
		return carrier.DialQUIC(ctx, socket, way.Remote, c.tls)
	}
	conf := c.tls
	if ticket, _ := conf.ClientSessionCache.Get(conf.ServerName); ticket != nil {
		// The ticket's secret comes from a handshake that was safe from quantum
		// computers, and makes this one so. Without a key exchange for that, the
		// first flight is one packet less that can be lost.
		conf = conf.Clone()
		conf.CurvePreferences = []tls.CurveID{tls.X25519}
	}
	return carrier.DialQUICEarly(ctx, socket, way.Remote, conf)
}

// forgetTicket has the next connection made as the first was. After that the cache
// may have a ticket that is nil.
func (c *Client) forgetTicket() { c.tls.ClientSessionCache.Put(c.tls.ServerName, nil) }

// login connects, proves who we are and asks for something. It returns the
// answer, and the connection, on which whatever follows the answer comes.
func (c *Client) login(ctx context.Context, request wire.Message) (*carrier.QUIC, wire.Message, error) {
	if c.cfg.Ticket == nil && len(c.cfg.Keys) == 0 {
		return nil, wire.Message{}, ErrNoKeys
	}
	link, err := c.dial(ctx)
	if err != nil {
		return nil, wire.Message{}, hostError(err)
	}
	stop := context.AfterFunc(ctx, func() { link.Close() })
	defer stop()
	answer, err := c.authenticate(link, request)
	if err != nil {
		link.Close()
		return nil, wire.Message{}, err
	}
	if answer.Type == wire.TypeError {
		link.Close()
		var e wire.Error
		if err := answer.Decode(&e); err != nil {
			return nil, wire.Message{}, err
		}
		return nil, wire.Message{}, &ServerError{e.Code, e.Text}
	}
	return link, answer, nil
}

// hostError picks what the host's key has against a connection out of an error,
// or else calls the server unreachable.
func hostError(err error) error {
	var unknown *auth.UnknownHostError
	var changed *auth.ChangedHostError
	var revoked *auth.RevokedHostError
	var refused *quic.TransportError
	switch {
	case errors.As(err, &changed):
		return changed
	case errors.As(err, &revoked):
		return revoked
	case errors.As(err, &unknown):
		return unknown
	case errors.As(err, &refused) && refused.ErrorCode == quic.ConnectionRefused:
		return ErrBusy
	case errors.Is(err, context.Canceled):
		return err
	}
	return &UnreachableError{err}
}

// authenticate sends all that is likely to be needed at once: in the best case
// the answer to the request is the first thing that comes back.
func (c *Client) authenticate(link *carrier.QUIC, request wire.Message) (wire.Message, error) {
	state := link.Conn().ConnectionState().TLS
	hello := &wire.Hello{Software: c.cfg.Software, User: c.cfg.User}
	keys := c.cfg.Keys[:min(len(c.cfg.Keys), wire.MaxKeys)]
	for _, k := range keys {
		hello.Keys = append(hello.Keys, k.Public.Marshal())
	}
	tried := make(map[string]bool)
	answer := func(k *auth.UserKey) (*wire.Answer, error) {
		blob := k.Public.Marshal()
		tried[string(blob)] = true
		signature, err := k.Sign(state, c.cfg.User)
		return &wire.Answer{Key: blob, Signature: signature}, err
	}
	var flight []byte
	add := func(v wire.Body) error {
		m, err := wire.New(v)
		flight = m.Append(flight)
		return err
	}
	err := add(hello)
	if c.cfg.Ticket != nil {
		err = errors.Join(err, add(&wire.Ticket{Ticket: c.cfg.Ticket}))
	} else if keys[0].Silent() {
		if a, signErr := answer(keys[0]); signErr == nil {
			err = errors.Join(err, add(a))
		}
	}
	if err != nil {
		return wire.Message{}, err
	}
	if _, err := link.Write(request.Append(flight)); err != nil {
		return wire.Message{}, err
	}
	var failed error
	for {
		m, err := wire.Read(link, wire.MaxMessage)
		if err != nil {
			return m, fmt.Errorf("the server broke off: %w", err)
		}
		if m.Type == wire.TypeDenied {
			return m, &DeniedError{failed}
		}
		if m.Type != wire.TypeOffer {
			return m, nil
		}
		var offer wire.Offer
		if err := m.Decode(&offer); err != nil {
			return m, err
		}
		answered := false
		for _, k := range keys {
			if tried[string(k.Public.Marshal())] || !contains(offer.Keys, k.Public.Marshal()) {
				continue
			}
			a, err := answer(k)
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			if err := wire.Send(link, a); err != nil {
				return m, err
			}
			answered = true
			break
		}
		if !answered {
			return m, &DeniedError{failed}
		}
	}
}

func contains(list [][]byte, b []byte) bool {
	for _, e := range list {
		if string(e) == string(b) {
			return true
		}
	}
	return false
}

// request asks the server for something that is done with the answer.
func (c *Client) request(ctx context.Context, v, into wire.Body) error {
	m, err := wire.New(v)
	if err != nil {
		return err
	}
	link, answer, err := c.login(ctx, m)
	if err != nil {
		return err
	}
	defer link.Close()
	return answer.Decode(into)
}

// List returns the account's sessions on the server, the latest to change first.
// Of a great many it returns the first, and how many more there are.
func (c *Client) List(ctx context.Context) (infos []wire.Info, more int, err error) {
	var listing wire.Listing
	if err := c.request(ctx, &wire.List{}, &listing); err != nil {
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

// Kill ends a session, given by its name or the start of its id.
func (c *Client) Kill(ctx context.Context, name string) error {
	return c.request(ctx, &wire.Kill{Session: name}, &wire.Done{})
}
