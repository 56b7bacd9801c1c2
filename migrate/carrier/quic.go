package carrier

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// idleTimeout is when QUIC gives a silent connection up. Long before that
	// its user has tried others; this only tidies up after a peer that is gone.
	idleTimeout = 90 * time.Second

	// handshakeTimeout allows for a few lost packets on a slow path.
	handshakeTimeout = 10 * time.Second

	// packetSize is what every path can carry. A client does not notice when
	// its packets take another path, so it never sends larger ones.
	packetSize = 1200
)

// ClientConfig is the configuration of QUIC connections that clients dial.
func ClientConfig() *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:    handshakeTimeout,
		MaxIdleTimeout:          idleTimeout,
		InitialPacketSize:       packetSize,
		DisablePathMTUDiscovery: true,
		EnableDatagrams:         true,
		MaxIncomingStreams:      -1,
		MaxIncomingUniStreams:   -1,
	}
}

// ServerConfig is the configuration of QUIC connections that servers accept:
// one stream each, and the client's datagrams.
func ServerConfig() *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:  handshakeTimeout,
		MaxIdleTimeout:        idleTimeout,
		InitialPacketSize:     packetSize,
		EnableDatagrams:       true,
		MaxIncomingStreams:    1,
		MaxIncomingUniStreams: -1,
	}
}

// noIDs makes connection ids of length 0: a client with a socket for each
// connection needs none, and cannot run out of them on the move.
type noIDs struct{}

func (noIDs) GenerateConnectionID() (quic.ConnectionID, error) { return quic.ConnectionID{}, nil }
func (noIDs) ConnectionIDLen() int                             { return 0 }

// A QUIC is a carrier over a QUIC connection: its first stream and its
// datagrams.
type QUIC struct {
	conn   *quic.Conn
	stream *quic.Stream
	close  func() error
}

// DialQUIC connects to a server through a socket and opens the stream. The
// handshake is complete when it returns; nothing has been sent on the stream. The
// socket is the carrier's from then on, and closed with it or on an error.
func DialQUIC(ctx context.Context, socket net.PacketConn, addr netip.AddrPort, conf *tls.Config) (*QUIC, error) {
	transport := &quic.Transport{Conn: socket, ConnectionIDGenerator: noIDs{}}
	conn, err := transport.Dial(ctx, net.UDPAddrFromAddrPort(addr), conf, ClientConfig())
	if err != nil {
		transport.Close()
		socket.Close()
		return nil, err
	}
	closeAll := sync.OnceValue(func() error {
		conn.CloseWithError(0, "")
		transport.Close()
		return socket.Close()
	})
	stream, err := conn.OpenStream()
	if err != nil {
		closeAll()
		return nil, fmt.Errorf("open stream: %w", err)
	}
	return &QUIC{conn: conn, stream: stream, close: closeAll}, nil
}

// AcceptQUIC returns the carrier over a connection that a server accepted and
// its client's stream.
func AcceptQUIC(conn *quic.Conn, stream *quic.Stream) *QUIC {
	return &QUIC{conn: conn, stream: stream, close: func() error { return conn.CloseWithError(0, "") }}
}

// Conn returns the connection, to be asked for its state.
func (q *QUIC) Conn() *quic.Conn { return q.conn }

// Read implements [Carrier].
func (q *QUIC) Read(b []byte) (int, error) { return q.stream.Read(b) }

// Write implements [Carrier].
func (q *QUIC) Write(b []byte) (int, error) { return q.stream.Write(b) }

// CloseWrite ends what is written: the other end reads to its end.
func (q *QUIC) CloseWrite() error { return q.stream.Close() }

// SendDatagram implements [Carrier]. It waits while the connection has as many
// queued as it takes.
func (q *QUIC) SendDatagram(b []byte) error {
	err := q.conn.SendDatagram(b)
	if tooLarge := new(quic.DatagramTooLargeError); errors.As(err, &tooLarge) {
		return nil
	}
	return err
}

// ReceiveDatagram implements [Carrier].
func (q *QUIC) ReceiveDatagram() ([]byte, error) {
	return q.conn.ReceiveDatagram(context.Background())
}

// Datagrams implements [Carrier].
func (q *QUIC) Datagrams() bool { return q.conn.ConnectionState().SupportsDatagrams.Remote }

// Close implements [Carrier].
func (q *QUIC) Close() error { return q.close() }
