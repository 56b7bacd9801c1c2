package quic

import (
	"net"
	"sync/atomic"
	"time"
)

// An arrivalClock holds when a socket received its last packet, and how many bytes the system has got to send. quic-go
// counts the packets of a connection, but does not say when they arrive or leave.
type arrivalClock struct {
	begun time.Time
	last  atomic.Int64 // nanoseconds after begun, 0 before the first packet
	sent  atomic.Uint64
}

// leave records that a packet, or several, were given to the system. A nil clock records nothing.
func (a *arrivalClock) leave(bytes int) {
	if a != nil {
		a.sent.Add(uint64(bytes))
	}
}

func newArrivalClock() *arrivalClock { return &arrivalClock{begun: time.Now()} }

// record records that a read has returned. A nil clock records nothing.
func (a *arrivalClock) record(err error) {
	if a != nil && err == nil {
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
