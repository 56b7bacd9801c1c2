// Package carrier defines what the frames of an attachment travel on: a [Carrier]. Each kind
// is a package below this one: quic for a QUIC connection, tcp for TLS over TCP, unixsock for
// unix sockets on one machine, pipe for any ordered byte stream. That of tcp also runs over the messages of package
// websocket. Package sealed protects what any of them moves, and package carriertest tests them.
//
// A carrier may have further abilities, each a small interface that its user looks for with
// a type assertion and can do without:
//
//   - [StatsReader] tells what the path does: whether packets arrive, round trips, loss.
//   - [Addressed] tells the two addresses of the path.
//   - [Sender] tells when something has left.
//
// A carrier over TLS also has what a login proof is bound to (Encrypted of package auth). Another one
// proves the user in another way, before it is made.
package carrier

import (
	"io"
	"net/netip"
	"time"
)

const (
	// MaxDatagram is the largest payload of a datagram, in bytes. It fits into a QUIC packet
	// of 1200 bytes, which every path of the internet can carry (RFC 9000, 14).
	MaxDatagram = 1124

	// SealSize is how much of a datagram package sealed needs for itself. Frames leave it free on every carrier.
	SealSize = 24

	// DeadTime is how long a carrier is kept whose peer answers nothing. Long before that a client has dialed others:
	// this only removes those whose peer is gone.
	DeadTime = 90 * time.Second
)

// A Carrier is one way between the two ends of an attachment, with two lanes: a reliable
// stream in both directions and, if the path has them, datagrams.
//
// One goroutine may use each of Read, Write, SendDatagram and ReceiveDatagram at a time. After Close, or when the
// path is gone for good, all of them return an error. The code that makes or accepts a carrier closes it.
type Carrier interface {
	// Read reads from the stream. It blocks until there are bytes.
	io.Reader
	// Write writes to the stream. It blocks while the stream's buffers are full and does not keep its argument.
	io.Writer
	// SendDatagram sends a datagram of at most MaxDatagram bytes. If a queue is full it either blocks, or drops the
	// datagram and returns nil. It may drop an empty datagram. It does not keep its argument.
	SendDatagram(b []byte) error
	// ReceiveDatagram blocks until there is a datagram and returns it; the caller owns it.
	ReceiveDatagram() ([]byte, error)
	// Datagrams reports whether there is a datagram lane.
	Datagrams() bool
	// Close ends the carrier at both ends. Bytes that were written and have not arrived may be
	// lost. Any goroutine may call it, more than once.
	Close() error
}

// A StatsReader is a Carrier that counts what its path does.
type StatsReader interface {
	// Stats returns the counts since the carrier began. It does not block.
	Stats() Stats
}

// Stats are counts of a carrier's packets and bytes, without the headers below them.
type Stats struct {
	RTT                                       time.Duration // smoothed, 0 if not known
	PacketsSent, PacketsLost, PacketsReceived uint64
	BytesSent, BytesReceived                  uint64
	LastReceived                              time.Time // when a packet arrived last; zero if not known
}

// A Sender is a Carrier that counts the bytes that it has given to the system to send.
type Sender interface {
	// Sent returns how many those are, or false if they are not counted. It does not block.
	Sent() (bytes uint64, ok bool)
}

// Addressed is a Carrier whose path is one between two addresses.
type Addressed interface {
	// LocalAddr returns the address of the socket: its IP address may be unspecified.
	LocalAddr() netip.AddrPort
	RemoteAddr() netip.AddrPort
}
