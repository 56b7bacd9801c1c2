//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/migrate/carrier/tcp"
)

// An incoming is the connection of a client, of any kind. Any goroutine may call its methods.
type incoming interface {
	// Context ends with the connection. It has the values that admit gave it.
	Context() context.Context
	// RemoteAddr returns the address of the client as it is now.
	RemoteAddr() netip.AddrPort
	// Carrier blocks until the client can be read from, or ctx ends. It is called once.
	Carrier(ctx context.Context) (clientCarrier, error)
	// Refuse ends the connection because the daemon has too many.
	Refuse() error
	// Close ends the connection. It does not block.
	Close() error
}

// A clientCarrier is the carrier of a client. If it is also an [auth.Encrypted], a client can log in by a signature.
type clientCarrier interface {
	carrier.Carrier
	carrier.Addressed
	// HandshakeComplete returns a channel that is closed when the client has received something:
	// what it sends before may be a replay of what it sent on another connection.
	HandshakeComplete() <-chan struct{}
	// SetDeadline bounds how long reads and writes may block, SetWriteDeadline only writes.
	SetDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	// CloseWrite ends the stream in this direction: the client reads the rest, then io.EOF.
	CloseWrite() error
}

// A quicIncoming is a connection over QUIC.
type quicIncoming struct{ *quic.Incoming }

func (i quicIncoming) Carrier(ctx context.Context) (clientCarrier, error) {
	c, err := i.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// peerGone reports whether a connection ended because the client closed it, became silent, or did
// not complete the handshake.
func peerGone(err error) bool {
	return quic.PeerGone(err) || tcp.PeerGone(err) || errors.Is(err, errNoHandshake)
}
