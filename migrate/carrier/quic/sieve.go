package quic

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/ipv4"
)

// A sieve is a UDP socket that drops some of the packets that could begin a connection, before quic-go spends
// time on them: an answer to one takes as long as a key that is typed.
type sieve struct {
	*batchedSocket
	drop func(client netip.AddrPort) bool
}

// ReadBatch is how quic-go reads on unix.
func (s *sieve) ReadBatch(messages []ipv4.Message, flags int) (int, error) {
	for {
		n, err := s.batchedSocket.ReadBatch(messages, flags)
		if err != nil {
			return 0, err // n may be negative
		}
		if kept := s.sift(messages[:n]); kept > 0 {
			return kept, nil
		}
	}
}

// sift moves the packets that are kept to the front, and returns how many there are. Buffers stay where they are:
// quic-go knows them by their places.
func (s *sieve) sift(messages []ipv4.Message) (kept int) {
	for i := range messages {
		m := &messages[i]
		if begins(m.Buffers[0][:m.N]) && s.drop(addrPort(m.Addr)) {
			continue
		}
		if to := &messages[kept]; to != m {
			to.N, to.NN = copy(to.Buffers[0], m.Buffers[0][:m.N]), copy(to.OOB, m.OOB[:m.NN])
			to.Addr, to.Flags = m.Addr, m.Flags
		}
		kept++
	}
	return kept
}

// begins reports whether a packet may be the first one of a connection: it has a long header (RFC 9000, 17.2), and is
// an Initial or of a version for which the server has an answer. Smaller ones than smallest begin none: quic-go
// discards them without an answer (RFC 9000, 14.1 and 6.1). They must not cost a client its place.
func begins(packet []byte) bool {
	const long, typeBits, version1, smallest = 0x80, 0x30, 1, 1200
	if len(packet) < smallest || packet[0]&long == 0 {
		return false
	}
	return packet[0]&typeBits == 0 || binary.BigEndian.Uint32(packet[1:]) != version1
}
