// Package carrier has the ways that frames of an attachment travel: a QUIC
// connection across the network, a unix socket on one machine. Each is a
// [Carrier].
package carrier

import "io"

// MaxDatagram is the largest payload of a datagram, in bytes. It fits into a
// QUIC packet of 1200 bytes, which every path of the internet can carry
// (RFC 9000, 14).
const MaxDatagram = 1100

// A Carrier is one way between the two ends of an attachment, with two lanes:
// a reliable stream in both directions and, where the path has them, datagrams.
//
// One goroutine may use each of Read, Write, SendDatagram and ReceiveDatagram
// at a time. After Close, or when the path is gone for good, all of them return
// an error.
type Carrier interface {
	// Read reads from the stream.
	io.Reader
	// Write writes to the stream. It blocks while the stream's buffers are
	// full and does not keep its argument.
	io.Writer
	// SendDatagram sends a datagram of at most MaxDatagram bytes. Where queues
	// are full it either waits or drops the datagram and returns nil. It may
	// drop an empty one. It does not keep its argument.
	SendDatagram(b []byte) error
	// ReceiveDatagram waits for a datagram and returns it; the caller owns it.
	ReceiveDatagram() ([]byte, error)
	// Datagrams reports whether there is a datagram lane.
	Datagrams() bool
	// Close ends the carrier at both ends. What was written and is still on
	// its way may be lost. It may be called more than once, by anyone.
	Close() error
}
