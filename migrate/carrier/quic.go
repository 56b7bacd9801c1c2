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

	// packetSize is what every path can carry. Nobody notices when packets take
	// another path, so no larger ones are sent: once these vanish, QUIC sends
	// them again for ever. Over loopback there is no other path.
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
// one stream each, and the client's datagrams, both in early data as well.
func ServerConfig() *quic.Config {
	conf := &quic.Config{
		HandshakeIdleTimeout:    handshakeTimeout,
		MaxIdleTimeout:          idleTimeout,
		InitialPacketSize:       packetSize,
		DisablePathMTUDiscovery: true,
		EnableDatagrams:         true,
		Allow0RTT:               true,
		MaxIncomingStreams:      1,
		MaxIncomingUniStreams:   -1,
	}
	local := conf.Clone()
	local.DisablePathMTUDiscovery = false
	conf.GetConfigForClient = func(client *quic.ClientInfo) (*quic.Config, error) {
		if addr, ok := client.RemoteAddr.(*net.UDPAddr); ok && addr.IP.IsLoopback() {
			return local, nil
		}
		return conf, nil
	}
	return conf
}

// noIDs makes connection ids of length 0: a client with a socket for each
// connection needs none, and cannot run out of them on the move.
type noIDs struct{}

func (noIDs) GenerateConnectionID() (quic.ConnectionID, error) { return quic.ConnectionID{}, nil }
func (noIDs) ConnectionIDLen() int                             { return 0 }

// A QUIC is a carrier over a QUIC connection: its first stream and its
// datagrams.
type QUIC struct {
	conn      *quic.Conn
	stream    *quic.Stream
	datagrams bool       // the peer takes them
	gate      *earlyGate // of a client
	close     func() error
}

// DialQUIC connects to a server through a socket and opens the stream. The
// handshake is complete when it returns; nothing has been sent on the stream. The
// socket is the carrier's from then on, and closed with it or on an error.
func DialQUIC(ctx context.Context, socket net.PacketConn, addr netip.AddrPort, conf *tls.Config) (*QUIC, error) {
	return dialQUIC(ctx, socket, addr, conf, false)
}

// DialQUICEarly is like DialQUIC, but where conf's cache has a ticket of an
// earlier connection it returns at once, before anything was heard. What is sent
// from then on is early data: whoever sees it can have the server read it once
// more. If the server does not take it, reads and writes fail with
// [quic.Err0RTTRejected], nothing of it has reached the server's application, and
// only a carrier dialed without that ticket will do. It is for servers that have
// taken datagrams before: they must not stop (RFC 9221, 3).
func DialQUICEarly(ctx context.Context, socket net.PacketConn, addr netip.AddrPort, conf *tls.Config) (*QUIC, error) {
	return dialQUIC(ctx, socket, addr, conf, true)
}

func dialQUIC(ctx context.Context, socket net.PacketConn, addr netip.AddrPort, conf *tls.Config, early bool) (*QUIC, error) {
	transport := &quic.Transport{Conn: socket, ConnectionIDGenerator: noIDs{}}
	dial := transport.Dial
	if early {
		dial = transport.DialEarly
	}
	gate, conf := newEarlyGate(ctx, conf, early)
	conn, err := dial(ctx, net.UDPAddrFromAddrPort(addr), conf, ClientConfig())
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
	q := &QUIC{conn: conn, stream: stream, datagrams: true, gate: gate, close: closeAll}
	select {
	case <-conn.HandshakeComplete():
		q.datagrams = conn.ConnectionState().SupportsDatagrams.Remote
	default: // there is no asking yet, the gate may keep the answer
	}
	close(gate.opened)
	return q, nil
}

// AcceptQUIC returns the carrier over a connection that a server accepted and
// its client's stream.
func AcceptQUIC(conn *quic.Conn, stream *quic.Stream) *QUIC {
	return &QUIC{
		conn:      conn,
		stream:    stream,
		datagrams: conn.ConnectionState().SupportsDatagrams.Remote,
		close:     func() error { return conn.CloseWithError(0, "") },
	}
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
	err := q.sendDatagram(b)
	if tooLarge := new(quic.DatagramTooLargeError); errors.As(err, &tooLarge) {
		return nil
	}
	return err
}

func (q *QUIC) sendDatagram(b []byte) error {
	if q.gate != nil {
		closed, err := q.gate.pass(func() error { return q.conn.SendDatagram(b) })
		if !closed {
			return err
		}
		select {
		case <-q.conn.HandshakeComplete():
		case <-q.conn.Context().Done():
		}
	}
	return q.conn.SendDatagram(b)
}

// ReceiveDatagram implements [Carrier].
func (q *QUIC) ReceiveDatagram() ([]byte, error) {
	return q.conn.ReceiveDatagram(context.Background())
}

// Datagrams implements [Carrier].
func (q *QUIC) Datagrams() bool { return q.datagrams }

// Close implements [Carrier].
func (q *QUIC) Close() error { return q.close() }
