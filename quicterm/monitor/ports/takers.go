//go:build linux || darwin

package ports

import (
	"fmt"
	"net/netip"
)

// A Taker is a socket at a port that a daemon listens on, or wants to.
type Taker struct {
	UID      uint32
	protocol string // "udp" or "tcp"
	address  netip.AddrPort
	inode    string // that /proc names the socket by
}

func (t Taker) String() string {
	return fmt.Sprintf("%s %v, by process %d of user id %d", t.protocol, t.address, processOf(t.inode), t.UID)
}

// takenBy returns a text that names the sockets which keep a binding from being opened, as far as the system says.
func takenBy(b binding) (text string) {
	for _, t := range Takers(b.protocol(), b.address.Port()) {
		if b.address.Addr().IsUnspecified() || t.address.Addr().IsUnspecified() || t.address == b.address {
			text += "; taken: " + t.String()
		}
	}
	return text
}
