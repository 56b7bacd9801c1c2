package forwards

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
)

var errSOCKS = errors.New("it does not speak SOCKS 5, or asks for more than a connection")

// What SOCKS (RFC 1928) knows of replies.
const (
	socksDone    = 0
	socksFailed  = 1
	socksRefused = 2
)

// readSOCKS reads where a connection by SOCKS goes. Names are not resolved. The caller answers it by replySOCKS.
func readSOCKS(c io.ReadWriter) (a Address, err error) {
	b := make([]byte, 255)
	if _, err := io.ReadFull(c, b[:2]); err != nil || b[0] != 5 {
		return a, errors.Join(errSOCKS, err)
	}
	methods := b[:b[1]]
	if _, err := io.ReadFull(c, methods); err != nil {
		return a, err
	}
	method := byte(0xff)
	for _, m := range methods {
		if m == 0 { // without a password: the listener is for this machine, as with ssh
			method = 0
		}
	}
	if _, err := c.Write([]byte{5, method}); err != nil || method != 0 {
		return a, errors.Join(errSOCKS, err)
	}
	if _, err := io.ReadFull(c, b[:4]); err != nil {
		return a, err
	}
	if b[0] != 5 || b[1] != 1 {
		replySOCKS(c, 7) // command not supported
		return a, errSOCKS
	}
	size := map[byte]int{1: 4, 4: 16}[b[3]]
	named := b[3] == 3
	if named {
		if _, err := io.ReadFull(c, b[:1]); err != nil {
			return a, err
		}
		size = int(b[0])
	}
	if size == 0 {
		replySOCKS(c, 8) // address type not supported
		return a, errSOCKS
	}
	host := b[:size]
	if _, err := io.ReadFull(c, host); err != nil {
		return a, err
	}
	if a.Host = string(host); !named {
		addr, _ := netip.AddrFromSlice(host)
		a.Host = addr.String()
	}
	var port [2]byte
	if _, err := io.ReadFull(c, port[:]); err != nil {
		return a, err
	}
	a.Port = binary.BigEndian.Uint16(port[:])
	return a, nil
}

// replySOCKS answers a request. The address at the server's end is not told.
func replySOCKS(c io.Writer, reply byte) error {
	_, err := c.Write([]byte{5, reply, 0, 1, 0, 0, 0, 0, 0, 0})
	return err
}
