package quic

import (
	"context"
	"errors"
	"net"
	"syscall"

	"golang.org/x/net/ipv4"

	"github.com/quicterm/quicterm/migrate/netmon"
)

// A Socket is a UDP socket whose sends do not fail: a packet that the network refuses now (no
// route, no permission, an interface that is gone) is lost like any other packet. For quic-go
// such an error would be the end of the connection.
type Socket struct {
	*net.UDPConn
}

// ListenUDP opens a socket for a dial, on a free port of all addresses of both families. Its
// packets leave over the interface, or over one that the system chooses if the name is empty.
func ListenUDP(iface string) (net.PacketConn, error) {
	config := net.ListenConfig{Control: netmon.Bind(iface)}
	c, err := config.ListenPacket(context.Background(), "udp", ":0")
	if err != nil {
		return nil, err
	}
	return &Socket{UDPConn: c.(*net.UDPConn)}, nil
}

// WriteMsgUDP sends a packet. Quic-go uses it on systems whose kernel sends batches.
func (s *Socket) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	if _, _, err := s.UDPConn.WriteMsgUDP(b, oob, addr); fatal(err) {
		return 0, 0, err
	}
	return len(b), len(oob), nil
}

// WriteTo sends a packet.
func (s *Socket) WriteTo(b []byte, addr net.Addr) (int, error) {
	if _, err := s.UDPConn.WriteTo(b, addr); fatal(err) {
		return 0, err
	}
	return len(b), nil
}

// A batchedSocket is a Socket that receives several packets with one system call.
type batchedSocket struct {
	*Socket
	batch    *batch
	arrivals *arrivalClock // or nil
}

// batched returns socket, as a batchedSocket if it is a Socket. With a clock it is a client's, to which much comes in
// bursts.
func batched(socket net.PacketConn, arrivals *arrivalClock) (net.PacketConn, error) {
	s, ok := socket.(*Socket)
	switch {
	case !ok && arrivals == nil:
		return socket, nil
	case !ok:
		return &timedPacketConn{socket, arrivals}, nil
	}
	batch, err := newBatch(s.UDPConn, arrivals != nil)
	if err != nil {
		return nil, err
	}
	return &batchedSocket{s, batch, arrivals}, nil
}

// ReadBatch is how quic-go reads on unix.
func (s *batchedSocket) ReadBatch(messages []ipv4.Message, _ int) (int, error) {
	n, err := s.batch.receive(messages)
	s.arrivals.record(err)
	return n, err
}

// ReadMsgUDP is how quic-go reads on Windows.
func (s *batchedSocket) ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error) {
	n, oobn, flags, addr, err = s.Socket.ReadMsgUDP(b, oob)
	s.arrivals.record(err)
	return n, oobn, flags, addr, err
}

// WriteMsgUDP sends a packet.
func (s *batchedSocket) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	if err := s.batch.send(b, oob, addr); fatal(err) {
		return 0, 0, err
	}
	s.arrivals.leave(len(b))
	return len(b), len(oob), nil
}

// fatal reports whether quic-go must see an error: the socket is closed, or the packet is too
// large, and quic-go sends a smaller one.
func fatal(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EMSGSIZE)
}
