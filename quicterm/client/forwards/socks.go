package forwards

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/quicterm/quicterm/quicterm/forward/permit"
)

var errSOCKS = errors.New("it does not speak SOCKS 4 or 5, or asks for more than a connection")

// What SOCKS 5 (RFC 1928) knows of replies. SOCKS 4 has but one for a request that fails.
const (
	socksDone    = 0
	socksFailed  = 1
	socksRefused = 2
)

// readSOCKS reads where a connection by SOCKS 4, 4A or 5 goes, and returns a function that answers it. Names are not
// resolved.
func readSOCKS(c io.ReadWriter) (a Address, answer func(reply byte), err error) {
	var version [1]byte
	_, err = io.ReadFull(c, version[:])
	switch {
	case err == nil && version[0] == 4:
		a, err = readSOCKS4(c)
		return a, func(reply byte) { replySOCKS4(c, reply) }, err
	case err == nil && version[0] == 5:
		a, err = readSOCKS5(c)
		return a, func(reply byte) { replySOCKS5(c, reply) }, err
	}
	return a, nil, errors.Join(errSOCKS, err)
}

// readSOCKS4 reads what follows the version. By SOCKS 4A, a name comes last, and an address that is none before it.
func readSOCKS4(c io.Reader) (a Address, err error) {
	var b [7]byte // command, port, address
	if _, err := io.ReadFull(c, b[:]); err != nil || b[0] != 1 {
		return a, errors.Join(errSOCKS, err)
	}
	addr := netip.AddrFrom4([4]byte(b[3:]))
	a.Host, a.Port = addr.String(), binary.BigEndian.Uint16(b[1:])
	_, err = readSOCKS4Text(c) // a user, who is not asked for
	if err == nil && b[3]|b[4]|b[5] == 0 && b[6] != 0 {
		if a.Host, err = readSOCKS4Text(c); a.Host == "" {
			err = errors.Join(errSOCKS, err)
		}
	}
	return a, err
}

// readSOCKS4Text reads up to a zero byte.
func readSOCKS4Text(c io.Reader) (string, error) {
	var text []byte
	for b := []byte{0}; len(text) <= 255; text = append(text, b[0]) {
		if _, err := io.ReadFull(c, b); err != nil || b[0] == 0 {
			return string(text), err
		}
	}
	return "", errSOCKS
}

func replySOCKS4(c io.Writer, reply byte) {
	answer := [8]byte{1: 91}
	if reply == socksDone {
		answer[1] = 90
	}
	c.Write(answer[:])
}

// readSOCKS5 reads what follows the version.
func readSOCKS5(c io.ReadWriter) (a Address, err error) {
	b := make([]byte, 255)
	if _, err := io.ReadFull(c, b[:1]); err != nil {
		return a, err
	}
	methods := b[:b[0]]
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
		replySOCKS5(c, 7) // command not supported
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
		replySOCKS5(c, 8) // address type not supported
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

// replySOCKS5 answers a request. The address at the server's end is not told.
func replySOCKS5(c io.Writer, reply byte) {
	c.Write([]byte{5, reply, 0, 1, 0, 0, 0, 0, 0, 0})
}

// connectBy calls dial, unless too many others do not answer: each that the server has accepted may be one.
func (f *Forwards) connectBy(dial func() (net.Conn, error)) (net.Conn, error) {
	select {
	case f.dials <- struct{}{}:
		defer func() { <-f.dials }()
	default:
		return nil, fmt.Errorf("%d others do not answer", maxDials)
	}
	return dial()
}

func socksReply(err error) byte {
	if err != nil {
		return socksFailed
	}
	return socksDone
}

// permits reports whether PermitRemoteOpen lets a connection by SOCKS go to a target of this machine.
func (f *Forwards) permits(target Address) bool {
	rules := permit.Rules{}
	if f.config.Permit != nil {
		rules.Dials = []permit.List{f.config.Permit}
	}
	return rules.Dial(target.Host, target.Port) == nil
}
