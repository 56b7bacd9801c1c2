package carrier

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/quicterm/quicterm/migrate/netmon"
)

// A Socket is a UDP socket whose sends never fail: what the network refuses
// now (no route, no permission, an interface that went away) is lost like any
// packet. To quic-go any such error would be the end of the connection.
type Socket struct {
	*net.UDPConn
}

// ListenUDP opens a socket for a connection that a client dials, on a free port
// of all addresses of both families. Its packets leave over an interface, or as
// the system chooses if its name is empty.
func ListenUDP(iface string) (net.PacketConn, error) {
	config := net.ListenConfig{Control: netmon.Bind(iface)}
	c, err := config.ListenPacket(context.Background(), "udp", ":0")
	if err != nil {
		return nil, err
	}
	return &Socket{UDPConn: c.(*net.UDPConn)}, nil
}

// WriteMsgUDP sends a packet, as quic-go does where it can use the kernel's
// batching.
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

// fatal reports whether quic-go has to know of an error: that the socket was
// closed, or that the packet was too large, which it can mend.
func fatal(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EMSGSIZE)
}
