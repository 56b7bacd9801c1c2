//go:build linux || darwin

package monitor

import (
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// startedMemory is how long the daemon remembers for which client it has started a session. A
// client sends its request again when a connection is lost or another one is faster: within
// seconds.
const startedMemory = 2 * time.Minute

// A starter is the client for which a session was started.
type starter struct {
	uid      uint32
	instance wire.InstanceID
}

// started remembers for which clients sessions were started. The second request of a client whose
// program has ended already must not run it again.
type started struct {
	mu sync.Mutex
	at map[starter]time.Time
}

// add remembers a client. A client without an instance does not ask again.
func (s *started) add(now time.Time, c starter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = make(map[starter]time.Time)
	}
	for c, at := range s.at { // few: starts are limited
		if now.Sub(at) > startedMemory {
			delete(s.at, c)
		}
	}
	if c.instance != (wire.InstanceID{}) {
		s.at[c] = now
	}
}

// has reports whether a session was started for a client.
func (s *started) has(c starter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.at[c]
	return ok
}
