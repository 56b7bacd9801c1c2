package quic

import (
	"context"
	"crypto/rand"
	"net"
	"net/netip"
	"time"
)

const (
	// knockInterval is how long an answer to a knock is awaited before the next one is sent.
	knockInterval = 300 * time.Millisecond

	// maxKnocks is how many are sent: more than a path loses in a row that sessions can use.
	maxKnocks = 5

	// MinKnock is the size of the smallest knock, in bytes: the answer is smaller, and has at least 21.
	MinKnock = 64
)

// Knock reports whether a server at an address answers UDP packets with a payload of some size, at least MinKnock
// bytes, without a connection: a packet of a connection that it does not know is answered by a stateless reset (RFC
// 9000, 10.3), which is smaller. It returns the context's error if that ends first, and errors of the socket. On
// Linux, packets are not cut into fragments on the way. The caller closes the socket.
func Knock(ctx context.Context, socket net.PacketConn, addr netip.AddrPort, size int) (answered bool, err error) {
	defer context.AfterFunc(ctx, func() { socket.SetReadDeadline(time.Now()) })()
	if err := forbidFragments(socket); err != nil {
		return false, err
	}
	for range maxKnocks {
		if err := SendKnock(socket, addr, size); err != nil {
			return false, err
		}
		socket.SetReadDeadline(time.Now().Add(knockInterval))
		if AwaitKnock(socket, addr) == nil {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
	}
	return false, nil
}

// SendKnock sends a knock. It returns errors of the socket.
func SendKnock(socket net.PacketConn, addr netip.AddrPort, size int) error {
	packet := make([]byte, size)
	rand.Read(packet)
	packet[0] = packet[0]&0x3f | 0x40 // a short header
	_, err := socket.WriteTo(packet, net.UDPAddrFromAddrPort(addr))
	return err
}

// AwaitKnock blocks until an answer to a knock arrives, or the socket returns an error.
func AwaitKnock(socket net.PacketConn, addr netip.AddrPort) error {
	answer := make([]byte, 1500)
	for {
		_, from, err := socket.ReadFrom(answer)
		if err != nil || addrPort(from) == addr {
			return err
		}
	}
}
