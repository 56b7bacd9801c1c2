//go:build !linux || race

package quic

import (
	"net"

	"golang.org/x/net/ipv4"
)

// A batch moves the packets of a UDP socket.
type batch struct {
	conn   *net.UDPConn
	packet *ipv4.PacketConn
}

func newBatch(conn *net.UDPConn, _ bool) (*batch, error) {
	return &batch{conn, ipv4.NewPacketConn(conn)}, nil
}

func (s *batch) receive(messages []ipv4.Message) (int, error) { return s.packet.ReadBatch(messages, 0) }

func (s *batch) send(b, oob []byte, to *net.UDPAddr) error {
	_, _, err := s.conn.WriteMsgUDP(b, oob, to)
	return err
}
