//go:build linux || darwin

package main

import (
	"math/rand/v2"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// oldDatagrams is how many datagrams of each session and direction a lying relay keeps, of all its carriers.
const oldDatagrams = 64

// lie reports whether the relay lies now.
func (e *end) lie() bool {
	share := e.holders.host.world.lies.Load()
	return share > 0 && rand.Int64N(1e6) < share
}

// cut returns what a lying relay leaves of what it passes on.
func (e *end) cut(b []byte) []byte {
	if len(b) == 0 || !e.lie() {
		return b
	}
	e.holders.host.world.reached("lie: cut")
	return b[:rand.IntN(len(b))]
}

// old keeps a sealed datagram, and returns one that a lying relay passes on as well: of this carrier or an earlier one
// of the session. What is not sealed is of a carrier that TLS alone protects, which a relay could make up.
func (e *end) old(b []byte, up bool) []byte {
	if !e.sealed || len(b) == 0 {
		return nil
	}
	key := direction{e.id, up}
	h := e.holders
	h.mu.Lock()
	if h.passed == nil {
		h.passed = make(map[direction][]passed)
	}
	h.passed[key] = append(h.passed[key], passed{e, append([]byte(nil), b...)})
	if n := len(h.passed[key]); n > oldDatagrams {
		h.passed[key] = h.passed[key][n-oldDatagrams:]
	}
	chosen := h.passed[key][rand.IntN(len(h.passed[key]))]
	h.mu.Unlock()
	if !e.lie() {
		return nil
	}
	if chosen.end == e {
		h.host.world.reached("lie: repeated")
	} else {
		h.host.world.reached("lie: from an old carrier")
	}
	return append([]byte(nil), chosen.data...)
}

// A direction is that of the datagrams of a session, and passed is one that the relay has passed on.
type direction struct {
	id wire.SessionID
	up bool
}

type passed struct {
	end  *end
	data []byte
}
