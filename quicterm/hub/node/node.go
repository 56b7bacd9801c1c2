// Package node is the connection of a host or a person to a hub. A host announces itself and takes relayed streams; a
// person lists hosts and opens streams to them. What a hub or a peer sends is bounded before memory is taken for it, and
// nothing of it is passed on in an error as it came.
//
//	stream.Write   hub.Flow.Send     a message with a number, if the other end has room
//	               nats.go           lines of NATS, over a WebSocket in TLS, to the hub and from there
//	canonical.Read                   lines with bounded sizes, made anew
//	               nats.go
//	stream.handle  hub.Flow.Receive  checks the number and the window
//	stream.Read    hub.Flow.Consume  lets the other end send more
package node

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/migrate/carrier/websocket"
	"github.com/quicterm/quicterm/quicterm/hub"
)

const (
	// connectTime bounds connecting and logging in, without the time that Sign takes.
	connectTime = 15 * time.Second

	// pingTime is how often each end asks whether the other is there; after maxPings without an answer it is not. With both
	// ends, that is 20 bytes a second on the wire.
	pingTime = 20 * time.Second
	maxPings = 2
)

// A Login proves a key to a hub.
type Login struct {
	Key ssh.PublicKey

	// Sign signs a text by the key, for RSA with SHA-2. It may wait for a person, unless ctx ends.
	Sign func(ctx context.Context, text []byte) (*ssh.Signature, error)
}

// A Conn is a connection to a hub, on which a login has been accepted. It is safe for concurrent use.
type Conn struct {
	url  string // for people
	user string // UserID of the login
	log  *slog.Logger
	nats *nats.Conn
	raw  net.Conn
	pool pool
	done chan struct{}

	closing sync.Once
	running sync.WaitGroup

	mu      sync.Mutex
	err     error                  // why the connection has ended
	streams map[*stream]struct{}   // that messages come for
	waiting map[string]func(error) // by the subject whose permission may be denied
	calls   map[streamKey]*stream  // of a host: by who has opened it
	callers map[hub.UserID]int     // of a host: how many streams each has
}

// Dial connects to the hub at a URL (hub.ParseAddress), and logs in. Errors are for people.
func Dial(ctx context.Context, url string, login Login, logger *slog.Logger) (*Conn, error) {
	at, err := hub.ParseAddress(url)
	if err != nil {
		return nil, err
	}
	proof, err := prove(ctx, at, login)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	raw, err := connect(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("hub %s: %w", at, err)
	}
	c := &Conn{
		url: at.String(), user: hub.UserIDOf(login.Key).String(), log: logger, raw: raw, done: make(chan struct{}),
		streams: make(map[*stream]struct{}), waiting: make(map[string]func(error)),
		calls: make(map[streamKey]*stream), callers: make(map[hub.UserID]int),
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	c.nats, err = proof.logIn(c, raw)
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		raw.Close()
		if c.nats != nil {
			c.nats.Close()
		}
		return nil, loginError(at, login.Key, err)
	}
	c.running.Go(c.tick)
	return c, nil
}

// loginError tells people why a login has failed.
func loginError(at *hub.Address, key ssh.PublicKey, err error) error {
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) {
		return fmt.Errorf("hub %s does not let this key in. Its list needs a line \"person NAME %s\" or \"host NAME …\", "+
			"it must be known as %s there, and the clocks must agree within %v",
			at, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), at.Host, hub.MaxSkew)
	}
	return fmt.Errorf("hub %s: log in: %s", at, plain(err.Error()))
}

// connect opens a WebSocket to a hub that proves who it is.
func connect(ctx context.Context, at *hub.Address) (net.Conn, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: at.Host, NextProtos: []string{"http/1.1"}}
	if at.Pinned {
		config.InsecureSkipVerify = true // the key alone counts, which VerifyConnection checks
		config.VerifyConnection = func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return errors.New("it shows no certificate")
			}
			pin := hub.PinOf(state.PeerCertificates[0])
			if subtle.ConstantTimeCompare(pin[:], at.Pin[:]) != 1 {
				return errors.New("it has another key than its URL says: the URL is old, or this is another machine")
			}
			return nil
		}
	}
	dialer := tls.Dialer{Config: config}
	return websocket.OpenVerified(ctx, "wss://"+at.Join()+"/", func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, at.Join())
	})
}

// A proof is what a login sends to the hub.
type proof struct {
	key   nkeys.KeyPair
	name  string // the public nkey
	token string
}

// prove makes a nkey for one connection, and lets the login sign it.
func prove(ctx context.Context, at *hub.Address, login Login) (*proof, error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	name, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	signature, err := login.Sign(ctx, hub.Statement(at.Host, now, name))
	if err != nil {
		return nil, fmt.Errorf("sign the login at hub %s: %w", at, err)
	}
	credential := hub.Credential{Key: login.Key.Marshal(), Time: now, Signature: ssh.Marshal(signature)}
	token, err := credential.Encode()
	return &proof{key, name, token}, err
}

// logIn speaks NATS on a connection. It neither follows what a server says of others nor connects again.
func (p *proof) logIn(c *Conn, raw net.Conn) (*nats.Conn, error) {
	options := nats.GetDefaultOptions()
	options.Url = "nats://hub:4222" // nobody dials it
	options.AllowReconnect = false
	options.IgnoreDiscoveredServers = true
	options.SkipHostLookup = true
	options.NoEcho = true
	options.CustomDialer = dialed{raw}
	options.Timeout = connectTime
	options.PingInterval = pingTime
	options.MaxPingsOut = maxPings
	options.Nkey = p.name
	options.SignatureCB = p.key.Sign
	options.Token = p.token
	options.AsyncErrorCB = func(_ *nats.Conn, _ *nats.Subscription, err error) { c.report(err) }
	options.ClosedCB = func(n *nats.Conn) { c.end(n.LastError()) }
	return options.Connect()
}

// A dialed has one connection, which is there already.
type dialed struct{ net.Conn }

func (d dialed) Dial(string, string) (net.Conn, error) { return newCanonical(d.Conn), nil }

// errClosed is the error of a connection that its user has closed.
var errClosed = errors.New("the connection to the hub is closed")

// end notes why the connection has ended, and ends its streams.
func (c *Conn) end(err error) {
	if err == nil {
		err = errClosed
	} else {
		err = fmt.Errorf("hub %s: %s", c.url, plain(err.Error()))
	}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	close(c.done)
	var streams []*stream
	for s := range c.streams {
		streams = append(streams, s)
	}
	var waiting []func(error)
	for _, w := range c.waiting {
		waiting = append(waiting, w)
	}
	c.mu.Unlock()
	for _, s := range streams {
		s.fail(err)
	}
	for _, w := range waiting {
		w(err)
	}
}

// Close ends the connection and all streams on it, and waits for that. It is idempotent.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		c.end(nil)
		c.raw.Close() // first: nats.go may wait for a write that blocks
		c.nats.Close()
	})
	c.running.Wait()
	return nil
}

// Done is closed when the connection has ended; Err says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection has ended, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// tick keeps the streams alive.
func (c *Conn) tick() {
	ticker := time.NewTicker(keepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-c.done:
			return
		case now := <-ticker.C:
			c.mu.Lock()
			var streams []*stream
			for s := range c.streams {
				streams = append(streams, s)
			}
			c.mu.Unlock()
			for _, s := range streams {
				s.tick(now)
			}
		}
	}
}

// report takes an error that came beside the calls: if the hub denies a subject, who waits for it learns that.
func (c *Conn) report(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		c.log.Debug("hub", "error", plain(err.Error()))
		return
	}
	text := err.Error()
	c.mu.Lock()
	var denied []func(error)
	for subject, w := range c.waiting {
		if strings.Contains(text, `"`+subject+`"`) {
			denied = append(denied, w)
		}
	}
	c.mu.Unlock()
	for _, w := range denied {
		w(errDenied)
	}
}

// errDenied is the error of what the hub does not let this login do.
var errDenied = errors.New("the hub denies this")

// wait lets a function learn that the hub denies a subject, or is lost, until forget is called. The function may be called
// more than once, and must not block.
func (c *Conn) wait(subject string, lost func(error)) (forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[subject] = lost
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, subject)
	}
}

// attach lets a stream live as long as the connection. It fails if that has ended.
func (c *Conn) attach(s *stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.streams[s] = struct{}{}
	return nil
}

func (c *Conn) publish(subject string) func([]byte) error {
	return func(message []byte) error { return c.nats.Publish(subject, message) }
}
