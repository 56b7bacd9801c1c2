//go:build linux || darwin

package monitor

import (
	"errors"
	"net/netip"
	"time"
)

// maxTakers bounds how many sockets are logged, and kept as logged: an account can take
// the port of any number of addresses, any number of times.
const maxTakers = 16

// A taker is a socket of another process that is in our way.
type taker struct {
	protocol string // "udp" or "tcp"
	address  netip.AddrPort
	uid      uint32
	inode    string // that /proc names the socket by
}

// lookInterval is the time between two looks who has a port. The system's table may be long.
const lookInterval = time.Minute

// reportLocked logs why a wish cannot be fulfilled, once, and who has the port.
func (l *sockets) reportLocked(w wish, port uint16, err error) {
	last, again := l.failed[w]
	if again && time.Since(last) < lookInterval {
		return
	}
	l.failed[w] = time.Now()
	log := l.server.log.With("protocol", w.protocol)
	known := false
	for _, t := range takers(w.protocol, port, l.oursLocked) {
		if known = true; !l.taken[t] && len(l.taken) < maxTakers {
			l.taken[t] = true
			log.Error("another process has a port of this daemon, which serves without it and tries again",
				"address", t.address.String(), "uid", t.uid, "pid", processOf(t.inode))
		}
	}
	if !known && !errors.Is(err, errEach) && !again {
		log.Error("cannot listen, and try again", "address", w.address, "error", err)
	}
}

// oursLocked reports whether a socket of a protocol is open at an address.
func (l *sockets) oursLocked(protocol string, a netip.AddrPort) bool {
	for _, c := range l.open {
		if c.bound.protocol() == protocol && c.bound.address == a {
			return true
		}
	}
	return false
}
