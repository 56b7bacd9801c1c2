package reach

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/hub"
	"github.com/quicterm/quicterm/quicterm/hub/node"
)

const (
	// maxHubKeys bounds the keys that a hub is shown, one a connection: as the default of MaxAuthTries of sshd.
	maxHubKeys = 6

	// staleTime is how long a hub may take to open a stream on a connection that was made before. Then that may be dead,
	// as after the network has changed, and another one is made.
	staleTime = 3 * time.Second
)

// onlyByHub reports whether the target is to be looked for at the hub of the settings: neither ssh's configuration nor the
// DNS knows it, and the command line does not say how to reach it.
func (a *Access) onlyByHub(ctx context.Context, opts *Options) bool {
	t := a.Target
	switch {
	case a.Settings.Hub == "", opts.Port != 0, opts.Bootstrap != "", t.Piped, t.Shared:
		return false
	case !strings.EqualFold(t.Hostname, t.Name), hub.CheckName(strings.ToLower(t.Name)) != nil:
		return false
	}
	_, err := t.resolve(ctx)
	var unknown *net.DNSError
	return errors.As(err, &unknown) && unknown.IsNotFound
}

// byHub calls f with an access through the hub. The host is known by its name there, and decides about the login as ever.
func (a *Access) byHub(ctx context.Context, cfg client.Config, f Call) error {
	keys, closeAgent, err := a.UserKeys()
	if err != nil {
		return err
	}
	defer closeAgent()
	h := &hubConn{url: a.Settings.Hub, keys: keys, log: a.Log, turn: make(chan struct{}, 1)}
	defer h.close()
	name := strings.ToLower(a.Target.Name)
	cfg.Relay = func(ctx context.Context) (net.Conn, error) { return h.dialHost(ctx, name) }
	return a.withKeys(ctx, cfg, keys, f)
}

// explainHub adds to an error of connecting through the hub what to try.
func (a *Access) explainHub(err error) error {
	failed := new(HubError)
	if errors.As(err, &failed) {
		return fmt.Errorf("neither ssh's configuration nor the DNS knows %s: %w", a.Target.Name, failed)
	}
	return Explain(err, a.Target)
}

// A HubError says why the hub does not lead to a host. The error below names the hub.
type HubError struct{ Err error }

func (e *HubError) Error() string { return e.Err.Error() }
func (e *HubError) Unwrap() error { return e.Err }

// Hosts returns the hosts that the hub of the settings shows to the user, and the hub's name and port.
func Hosts(ctx context.Context, opts *Options) (hosts []hub.Entry, at string, err error) {
	settings, err := configs.LoadClient("")
	if err != nil {
		return nil, "", err
	}
	if settings.Hub == "" {
		file, err := configs.ClientFile()
		if err != nil {
			return nil, "", err
		}
		return nil, "", fmt.Errorf(`no hub is set: write hub = "https://…" into %s`, file)
	}
	address, err := hub.ParseAddress(settings.Hub)
	if err != nil {
		return nil, "", err
	}
	a := &Access{Settings: settings, Log: opts.log()}
	if a.Target, err = findTarget(ctx, address.Host, opts, settings.Port); err != nil {
		return nil, "", err
	}
	if a.Target.Local { // there are keys for another machine alone
		if a.Target.Host, err = LoadSSH(ctx, address.Host, opts); err != nil {
			return nil, "", err
		}
	}
	keys, closeAgent, err := a.UserKeys()
	if err != nil {
		return nil, "", err
	}
	defer closeAgent()
	h := &hubConn{url: settings.Hub, keys: keys, log: a.Log, turn: make(chan struct{}, 1)}
	defer h.close()
	c, _, err := h.get(ctx)
	if err == nil {
		if hosts, err = c.Hosts(ctx); err != nil {
			err = &HubError{err}
		}
	}
	return hosts, address.Join(), err
}

// A hubConn is a connection to a hub, which is made when it is needed, and again when it is lost.
type hubConn struct {
	url  string
	keys []*auth.UserKey // that may prove the user
	log  *slog.Logger
	turn chan struct{} // has a token while the connection is made: a key may have to be touched

	mu       sync.Mutex
	conn     *node.Conn    // or nil
	accepted *auth.UserKey // by the hub, or nil
	closed   bool
}

var errHubClosed = errors.New("the connection to the hub is not needed any more")

func (h *hubConn) close() {
	h.mu.Lock()
	c := h.conn
	h.conn, h.closed = nil, true
	h.mu.Unlock()
	if c != nil {
		c.Close()
	}
}

// live returns the connection, or nil if there is none that has not ended.
func (h *hubConn) live() *node.Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn == nil {
		return nil
	}
	select {
	case <-h.conn.Done():
		go h.conn.Close()
		h.conn = nil
	default:
	}
	return h.conn
}

// drop gives up a connection that does not answer.
func (h *hubConn) drop(c *node.Conn) {
	h.mu.Lock()
	if h.conn == c {
		h.conn = nil
	}
	h.mu.Unlock()
	c.Close()
}

// get returns the connection, and whether it was there before. It makes one if there is none.
func (h *hubConn) get(ctx context.Context) (c *node.Conn, before bool, err error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	if c := h.live(); c != nil {
		return c, true, nil
	}
	c, key, err := h.login(ctx)
	if err != nil {
		return nil, false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		go c.Close()
		return nil, false, errHubClosed
	}
	h.conn, h.accepted = c, key
	return c, false, nil
}

// login connects with the first key that the hub accepts, that of the last time first.
func (h *hubConn) login(ctx context.Context) (*node.Conn, *auth.UserKey, error) {
	keys := h.candidates()
	if len(keys) == 0 {
		return nil, nil, client.ErrNoKeys
	}
	var err error
	for _, key := range keys {
		var c *node.Conn
		c, err = node.Dial(ctx, h.url, node.Login{Key: key.Public, Sign: signWith(key)}, h.log)
		if err == nil {
			return c, key, nil
		}
		h.log.Debug("not logged in to the hub", "key", ssh.FingerprintSHA256(key.Public), "error", err)
		if !errors.Is(err, node.ErrDenied) || ctx.Err() != nil {
			break
		}
	}
	return nil, nil, &HubError{err}
}

// candidates are the keys to try: certificates are for hosts.
func (h *hubConn) candidates() (keys []*auth.UserKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.accepted != nil {
		return []*auth.UserKey{h.accepted}
	}
	for _, silent := range []bool{true, false} { // those that ask the user for nothing first
		for _, k := range h.keys {
			if k.Silent() == silent && !auth.Certified(k.Public.Marshal()) && len(keys) < maxHubKeys {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// signWith returns a function that signs a text by a key.
func signWith(key *auth.UserKey) func(context.Context, []byte) (*ssh.Signature, error) {
	return func(_ context.Context, text []byte) (*ssh.Signature, error) {
		signer, err := key.Signer()
		if err != nil {
			return nil, err
		}
		if by, ok := signer.(ssh.AlgorithmSigner); ok && key.Public.Type() == ssh.KeyAlgoRSA {
			return by.SignWithAlgorithm(rand.Reader, text, ssh.KeyAlgoRSASHA512)
		}
		return signer.Sign(rand.Reader, text)
	}
}

// dialHost opens a stream to a host.
func (h *hubConn) dialHost(ctx context.Context, name string) (net.Conn, error) {
	for {
		c, before, err := h.get(ctx)
		if err != nil {
			return nil, err
		}
		opening, cancel := ctx, context.CancelFunc(func() {})
		if before {
			opening, cancel = context.WithTimeout(ctx, staleTime)
		}
		stream, err := c.DialHost(opening, name)
		late := opening.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			return stream, nil
		case before && (late || c.Err() != nil):
			h.drop(c)
			continue
		}
		return nil, &HubError{err}
	}
}
