// Package quic is the carrier over a QUIC connection (RFC 9000): its first stream, and its datagrams (RFC 9221). No
// other package knows QUIC. [DialEarly] sends before the handshake is complete if the last connection has left a ticket
// (0-RTT); a [Listener] accepts. [Knock] tells without a connection whether a server answers UDP.
//
// Whom a connection belongs to is not decided here, and nothing of what it carries is parsed. early.go, claim.go and
// arrival.go are for what quic-go does not offer; sieve.go drops packets of strangers in a flood before quic-go spends
// time on them.
package quic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"github.com/quicterm/quicterm/migrate/carrier"
)

const (
	// handshakeTimeout allows for a few lost packets on a slow path.
	handshakeTimeout = 10 * time.Second

	// StrangerTimeout is how long a server waits for the next packet of a handshake. A client that is gone uses its
	// resources.
	StrangerTimeout = handshakeTimeout / 2

	// packetSize is what every path can carry. No larger packets are sent, because no end
	// notices that packets take another path: if that carries less, QUIC sends the larger ones
	// again for ever. Only over loopback there is no other path.
	packetSize = 1200
)

// clientConfig is the configuration of connections that clients dial.
func clientConfig() *quicgo.Config {
	return &quicgo.Config{
		HandshakeIdleTimeout:    handshakeTimeout,
		MaxIdleTimeout:          carrier.DeadTime,
		InitialPacketSize:       packetSize,
		DisablePathMTUDiscovery: true,
		EnableDatagrams:         true,
		MaxIncomingStreams:      -1,
		MaxIncomingUniStreams:   1, // see claimer
	}
}

// noIDs makes connection ids of length 0. A client with a socket for each connection needs
// no others, and cannot run out of them when its address changes often.
type noIDs struct{}

func (noIDs) GenerateConnectionID() (quicgo.ConnectionID, error) { return quicgo.ConnectionID{}, nil }
func (noIDs) ConnectionIDLen() int                               { return 0 }

// A Conn is a carrier over a QUIC connection: the first stream and the datagrams. It has all
// optional abilities of a carrier.
type Conn struct {
	conn      *quicgo.Conn
	stream    *quicgo.Stream
	datagrams bool // the peer accepts them
	claimer   claimer
	gate      *earlyGate     // of a client
	arrivals  *arrivalClock  // of a client
	socket    net.PacketConn // of a client
	close     func() error
}

var (
	_ carrier.StatsReader = (*Conn)(nil)
	_ carrier.Addressed   = (*Conn)(nil)
	_ carrier.Sender      = (*Conn)(nil)
)

// Dial connects to a server through a socket and opens the stream. When it returns, the handshake is complete, and
// nothing has been sent on the stream. Dial owns the socket: the carrier closes it, or Dial does on an error.
func Dial(ctx context.Context, socket net.PacketConn, addr netip.AddrPort, conf *tls.Config) (*Conn, error) {
	return dial(ctx, socket, addr, conf, false)
}

// DialEarly is like Dial, but if conf's cache has a ticket of an earlier connection, it returns at once, before
// anything was received. Everything sent before the handshake is complete is early data: an attacker who records it
// can make the server read it again. If the server rejects early data, none of it has reached the server's
// application, reads and writes return an error for which [TicketRejected] is true, and the caller dials again
// without that ticket. DialEarly is for servers that have accepted datagrams before: they must not stop (RFC 9221,
// 3).
func DialEarly(ctx context.Context, socket net.PacketConn, addr netip.AddrPort, conf *tls.Config) (*Conn, error) {
	return dial(ctx, socket, addr, conf, true)
}

func dial(
	ctx context.Context, socket net.PacketConn, addr netip.AddrPort, conf *tls.Config, early bool,
) (*Conn, error) {
	arrivals := newArrivalClock()
	packets, err := batched(socket, arrivals)
	if err != nil {
		socket.Close()
		return nil, err
	}
	transport := &quicgo.Transport{Conn: packets, ConnectionIDGenerator: noIDs{}}
	dial := transport.Dial
	if early {
		dial = transport.DialEarly
	}
	gate, conf := newEarlyGate(ctx, conf, early)
	conn, err := dial(ctx, net.UDPAddrFromAddrPort(addr), conf, clientConfig())
	if err != nil {
		transport.Close()
		socket.Close()
		return nil, quoted(err)
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
	q := &Conn{conn: conn, stream: stream, datagrams: true, claimer: newClaimer(conn), gate: gate, arrivals: arrivals,
		socket: socket, close: closeAll}
	select {
	case <-conn.HandshakeComplete():
		q.datagrams = conn.ConnectionState().SupportsDatagrams.Remote
	default: // not known yet: quic-go may be writing the answer
	}
	close(gate.opened)
	return q, nil
}

// TLS returns the state of the handshake. Its exporter (RFC 8446, 7.5) fails before that is complete.
func (q *Conn) TLS() tls.ConnectionState { return q.conn.ConnectionState().TLS }

// HandshakeComplete returns a channel that is closed when the handshake is complete.
func (q *Conn) HandshakeComplete() <-chan struct{} { return q.conn.HandshakeComplete() }

// UsedEarlyData reports whether the server accepted early data. It is valid when the handshake is complete.
func (q *Conn) UsedEarlyData() bool { return q.conn.ConnectionState().Used0RTT }

// Context returns the context of the connection. It ends with the connection; its cause says why.
func (q *Conn) Context() context.Context { return q.conn.Context() }

// Stats implements [carrier.StatsReader].
func (q *Conn) Stats() carrier.Stats {
	s := q.conn.ConnectionStats()
	stats := carrier.Stats{
		RTT:             s.SmoothedRTT,
		PacketsSent:     s.PacketsSent,
		PacketsLost:     s.PacketsLost,
		PacketsReceived: s.PacketsReceived,
		BytesSent:       s.BytesSent,
		BytesReceived:   s.BytesReceived,
	}
	if q.arrivals != nil {
		stats.LastReceived = q.arrivals.lastArrival()
	}
	return stats
}

// Sent implements [carrier.Sender], for a client's connection over a [Socket].
func (q *Conn) Sent() (bytes uint64, ok bool) {
	if _, counts := q.socket.(*Socket); !counts {
		return 0, false
	}
	return q.arrivals.sent.Load(), true
}

// LocalAddr returns the address of the socket.
func (q *Conn) LocalAddr() netip.AddrPort { return addrPort(q.conn.LocalAddr()) }

// RemoteAddr returns the address of the peer.
func (q *Conn) RemoteAddr() netip.AddrPort { return addrPort(q.conn.RemoteAddr()) }

// addrPort returns a UDP address. It removes the IPv6 prefix that a dual-stack socket gives an IPv4 address.
func addrPort(a net.Addr) netip.AddrPort {
	udp, ok := a.(*net.UDPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	addr := udp.AddrPort()
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
}

// SetDeadline bounds how long reads from the stream and writes to it may block.
func (q *Conn) SetDeadline(t time.Time) error { return q.stream.SetDeadline(t) }

// SetWriteDeadline bounds how long writes to the stream may block.
func (q *Conn) SetWriteDeadline(t time.Time) error { return q.stream.SetWriteDeadline(t) }

// Read implements [carrier.Carrier].
func (q *Conn) Read(b []byte) (int, error) {
	n, err := q.stream.Read(b)
	return n, quoted(err)
}

// Write implements [carrier.Carrier].
func (q *Conn) Write(b []byte) (int, error) {
	n, err := q.stream.Write(b)
	return n, quoted(err)
}

// CloseWrite ends the stream in this direction: the peer reads the rest, then io.EOF.
func (q *Conn) CloseWrite() error { return q.stream.Close() }

// SendDatagram implements [carrier.Carrier]. It blocks while the connection's queue is full.
func (q *Conn) SendDatagram(b []byte) error {
	err := q.sendDatagram(b)
	if err == nil && len(b) > 0 {
		q.claimer.claim()
	}
	if tooLarge := new(quicgo.DatagramTooLargeError); errors.As(err, &tooLarge) {
		return nil
	}
	return err
}

func (q *Conn) sendDatagram(b []byte) error {
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

// ReceiveDatagram implements [carrier.Carrier].
func (q *Conn) ReceiveDatagram() ([]byte, error) {
	return q.conn.ReceiveDatagram(context.Background())
}

// Datagrams implements [carrier.Carrier].
func (q *Conn) Datagrams() bool { return q.datagrams }

// Abandon closes the connection without telling the peer, which has not answered.
func (q *Conn) Abandon() {
	q.socket.Close()
	q.close()
}

// Close implements [carrier.Carrier].
func (q *Conn) Close() error { return q.close() }
