// Package node is the connection of a host or a person to a hub. A host announces itself and takes relayed streams; a
// person lists hosts and opens streams to them. What a hub or a peer sends is bounded before memory is taken for it.
package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/hub"
)

// A Login proves a key to a hub.
type Login struct {
	Key ssh.PublicKey

	// Sign signs a text by the key, for RSA with SHA-2. It may wait for a person, unless ctx ends.
	Sign func(ctx context.Context, text []byte) (*ssh.Signature, error)

	// Prove, if not nil, takes the place of Sign: it builds the text itself, by [hub.Statement].
	Prove func(ctx context.Context, at time.Time, nkey string) (*ssh.Signature, error)

	// Dial, if not nil, makes the TCP connection.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// ErrDenied is the error of a login with a key that the hub does not accept.
var ErrDenied = errors.New("the hub does not accept this key")

// A Conn is a connection to a hub, on which a login has been accepted.
type Conn struct{}

var errUnsupported = errors.ErrUnsupported

// Dial connects to the hub at a URL (hub.ParseAddress), and logs in.
func Dial(ctx context.Context, url string, login Login, logger *slog.Logger) (*Conn, error) {
	return nil, errUnsupported
}

// Close ends the connection and all streams on it, and waits for that. It is idempotent.
func (c *Conn) Close() error { return errUnsupported }

// Done is closed when the connection has ended; Err says why.
func (c *Conn) Done() <-chan struct{} { return nil }

// Err returns why the connection has ended, or nil.
func (c *Conn) Err() error { return errUnsupported }

// Hosts returns the hosts that are connected to the hub and that the login may see, sorted by name.
func (c *Conn) Hosts(ctx context.Context) ([]hub.Entry, error) { return nil, errUnsupported }

// DialHost opens a stream to the daemon of a host. It can be half closed (CloseWrite).
func (c *Conn) DialHost(ctx context.Context, name string) (net.Conn, error) {
	return nil, errUnsupported
}

// Serve announces a host and hands each stream that is relayed to it to accept, which must not block and owns the stream.
// The caller is the person's, for limits. Serve returns when ctx or the connection ends.
func (c *Conn) Serve(ctx context.Context, entry hub.Entry, accept func(stream net.Conn, caller hub.UserID)) error {
	return errUnsupported
}
