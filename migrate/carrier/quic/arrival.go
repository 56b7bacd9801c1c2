package quic

import (
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/net/ipv4"
)

// An arrivalClock holds when a socket received its last packet. quic-go counts the packets
// of a connection, but does not say when they arrive.
type arrivalClock struct {
	begun time.Time
	last  atomic.Int64 // nanoseconds after begun, 0 before the first packet
}

func newArrivalClock() *arrivalClock { return &arrivalClock{begun: time.Now()} }

func (a *arrivalClock) record(err error) {
	if err == nil {
		a.last.Store(max(int64(time.Since(a.begun)), 1))
	}
}

// lastArrival returns when the last packet arrived, or zero if none has.
func (a *arrivalClock) lastArrival() time.Time {
	if n := a.last.Load(); n > 0 {
		return a.begun.Add(time.Duration(n))
	}
	return time.Time{}
}

// watch returns socket with its reads recorded.
func (a *arrivalClock) watch(socket net.PacketConn) net.PacketConn {
	if s, ok := socket.(*batchedSocket); ok {
		return &timedSocket{s, a}
	}
	return &timedPacketConn{socket, a}
}

// timedPacketConn is any socket that a test brings along.
type timedPacketConn struct {
	net.PacketConn
	clock *arrivalClock
}

func (c *timedPacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, addr, err := c.PacketConn.ReadFrom(b)
	c.clock.record(err)
	return n, addr, err
}

// SetReadBuffer and SetWriteBuffer keep quic-go from complaining that there are none.

func (c *timedPacketConn) SetReadBuffer(int) error  { return nil }
func (c *timedPacketConn) SetWriteBuffer(int) error { return nil }

// timedSocket is a UDP socket. It keeps the ways in which quic-go reads several packets or
// their ancillary data with one system call.
type timedSocket struct {
	*batchedSocket
	clock *arrivalClock
}

// ReadBatch is how quic-go reads on unix.
func (s *timedSocket) ReadBatch(messages []ipv4.Message, flags int) (int, error) {
	n, err := s.batchedSocket.ReadBatch(messages, flags)
	s.clock.record(err)
	return n, err
}

// ReadMsgUDP is how quic-go reads on Windows.
func (s *timedSocket) ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error) {
	n, oobn, flags, addr, err = s.Socket.ReadMsgUDP(b, oob)
	s.clock.record(err)
	return n, oobn, flags, addr, err
}
