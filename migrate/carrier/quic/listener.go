package quic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"

	quicgo "github.com/quic-go/quic-go"

	"github.com/quicterm/quicterm/migrate/carrier"
)

// ListenConfig says how a [Listener] accepts connections.
type ListenConfig struct {
	TLS *tls.Config

	// ResetKey and TokenKey outlive the listener. With the same keys, the next listener tells clients of this one
	// that their connections are gone (RFC 9000, 10.3), and accepts address tokens of this one (RFC 9000, 8.1.3). A
	// listener without ResetKey sends no resets; one without TokenKey makes a key of its own.
	ResetKey, TokenKey *[32]byte

	// VerifyAddress reports whether a client must first prove that it receives packets at its
	// address (RFC 9000, 8.1.2), which takes a round trip. Nil means never.
	VerifyAddress func(netip.AddrPort) bool

	// Drop reports whether a packet that may begin a connection is dropped before any time is spent on it, as if the
	// network had lost it. Its address may be forged. It is asked about packets of UDP sockets only. Nil drops none.
	Drop func(client netip.AddrPort) bool

	// Admit refuses a new connection by an error, whose text the client does not see. The
	// context that it returns becomes the context of the connection. Nil admits all.
	Admit func(ctx context.Context, client netip.AddrPort) (context.Context, error)

	// Grow reports whether the receive window of a connection, which has the context that Admit returned, may grow by
	// a number of bytes. Nil allows it. It must not block, nor use the connection.
	Grow func(ctx context.Context, bytes uint64) bool
}

// A Listener accepts connections on a UDP socket.
type Listener struct {
	transport *quicgo.Transport
	listener  *quicgo.EarlyListener
}

// Listen returns a listener on a socket. The caller owns the socket, and closes it after the listener.
func Listen(socket net.PacketConn, cfg ListenConfig) (*Listener, error) {
	packets, err := batched(socket, nil)
	if err != nil {
		return nil, err
	}
	if s, ok := packets.(*batchedSocket); ok && cfg.Drop != nil {
		packets = &sieve{s, cfg.Drop}
	}
	transport := &quicgo.Transport{
		Conn:              packets,
		StatelessResetKey: (*quicgo.StatelessResetKey)(cfg.ResetKey),
		TokenGeneratorKey: (*quicgo.TokenGeneratorKey)(cfg.TokenKey),
	}
	if cfg.VerifyAddress != nil {
		transport.VerifySourceAddress = func(a net.Addr) bool { return cfg.VerifyAddress(addrPort(a)) }
	}
	if cfg.Admit != nil {
		transport.ConnContext = func(ctx context.Context, info *quicgo.ClientInfo) (context.Context, error) {
			return cfg.Admit(ctx, addrPort(info.RemoteAddr))
		}
	}
	l, err := transport.ListenEarly(cfg.TLS, serverConfig(cfg.Grow))
	if err != nil {
		return nil, err
	}
	return &Listener{transport, l}, nil
}

// Accept blocks until there is a connection. Its handshake may not be complete: the client may have sent early data.
func (l *Listener) Accept(ctx context.Context) (*Incoming, error) {
	conn, err := l.listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return &Incoming{conn}, nil
}

// Close stops accepting and ends all connections, without telling the clients. The caller
// first closes those that are to be told.
func (l *Listener) Close() error {
	return errors.Join(l.listener.Close(), l.transport.Close())
}

// An Incoming is an accepted connection whose client may not have opened the stream yet.
type Incoming struct{ conn *quicgo.Conn }

// Context returns the context of the connection, as made by [ListenConfig.Admit]. It ends with the connection.
func (i *Incoming) Context() context.Context { return i.conn.Context() }

// RemoteAddr returns the address of the client.
func (i *Incoming) RemoteAddr() netip.AddrPort { return addrPort(i.conn.RemoteAddr()) }

// Close ends the connection at both ends.
func (i *Incoming) Close() error { return i.conn.CloseWithError(0, "") }

// Refuse ends the connection. At the client, [Refused] is true for its error.
func (i *Incoming) Refuse() error { return i.conn.CloseWithError(refused, "") }

// Conn blocks until the client has opened the stream, and returns the carrier.
func (i *Incoming) Conn(ctx context.Context) (*Conn, error) {
	stream, err := i.conn.AcceptStream(ctx)
	if err != nil {
		return nil, fmt.Errorf("accept stream: %w", err)
	}
	return &Conn{
		conn:      i.conn,
		stream:    stream,
		datagrams: i.conn.ConnectionState().SupportsDatagrams.Remote,
		claimer:   newClaimer(i.conn),
		close:     i.Close,
	}, nil
}

const (
	// initialWindow is how many bytes of its stream a client may send before the server reads: as much as fits into
	// the first congestion window. Memory for that is taken by clients that have proven nothing.
	initialWindow = 32 << 10

	// maxWindow is the same when the window has grown: what a holder lets a client have under way.
	maxWindow = 1 << 20
)

// serverConfig is the configuration of connections that servers accept: one stream each, and
// datagrams, both also as early data. Receive windows grow if grow allows it, or is nil.
func serverConfig(grow func(context.Context, uint64) bool) *quicgo.Config {
	conf := &quicgo.Config{
		HandshakeIdleTimeout:    StrangerTimeout,
		MaxIdleTimeout:          carrier.DeadTime,
		InitialPacketSize:       packetSize,
		DisablePathMTUDiscovery: true,
		EnableDatagrams:         true,
		Allow0RTT:               true,
		MaxIncomingStreams:      1,
		MaxIncomingUniStreams:   1, // see claimer

		InitialStreamReceiveWindow:     initialWindow,
		MaxStreamReceiveWindow:         maxWindow,
		InitialConnectionReceiveWindow: initialWindow,
		MaxConnectionReceiveWindow:     maxWindow,
	}
	if grow != nil {
		conf.AllowConnectionWindowIncrease = func(c *quicgo.Conn, bytes uint64) bool {
			return grow(c.Context(), bytes)
		}
	}
	local := conf.Clone()
	local.DisablePathMTUDiscovery = false
	conf.GetConfigForClient = func(client *quicgo.ClientInfo) (*quicgo.Config, error) {
		if addr, ok := client.RemoteAddr.(*net.UDPAddr); ok && addr.IP.IsLoopback() {
			return local, nil
		}
		return conf, nil
	}
	return conf
}
