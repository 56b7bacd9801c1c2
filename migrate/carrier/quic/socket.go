package quic

import (
	"context"
	"errors"
	"net"
	"syscall"

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

// fatal reports whether quic-go must see an error: the socket is closed, or the packet is too
// large, and quic-go sends a smaller one.
func fatal(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EMSGSIZE)
}
