package forward

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

const (
	// MaxDatagram bounds a datagram, in bytes: as much as UDP carries over IPv4.
	MaxDatagram = 65507

	// LengthSize is the size of the length that is in front of a datagram in its stream.
	LengthSize = 2
)

var errDatagram = errors.New("a datagram is too long")

// PutLength writes the length in front of a datagram, of which b has all after the first LengthSize bytes.
func PutLength(b []byte) { binary.BigEndian.PutUint16(b, uint16(len(b)-LengthSize)) }

// ReadDatagram reads a datagram of a stream. It returns buf, or a larger buffer in place of it.
func ReadDatagram(r io.Reader, buf []byte) ([]byte, error) {
	var length [LengthSize]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(length[:]))
	if n > MaxDatagram {
		return nil, errDatagram
	}
	if n > cap(buf) {
		buf = make([]byte, n)
	}
	_, err := io.ReadFull(r, buf[:n])
	return buf[:n], err
}

// joinDatagrams moves datagrams between a stream and a socket that is connected, until one of them ends, and closes both.
// While the stream takes nothing, the system drops what the socket has no room for.
func joinDatagrams(s *Stream, c net.Conn) {
	var wg sync.WaitGroup
	wg.Go(func() {
		defer s.Reset()
		buf := make([]byte, LengthSize+MaxDatagram)
		for {
			n, err := c.Read(buf[LengthSize:])
			if err != nil { // for instance because nobody listens at the target
				return
			}
			PutLength(buf[:LengthSize+n])
			if _, err := s.Write(buf[:LengthSize+n]); err != nil {
				return
			}
		}
	})
	var buf []byte
	for {
		b, err := ReadDatagram(s, buf)
		if err != nil {
			break
		}
		if _, err := c.Write(b); errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, net.ErrClosed) {
			break
		} // by other errors, one that is too large for the network for instance, it is lost
		buf = b
	}
	c.Close()
	s.Reset()
	wg.Wait()
}
