//go:build linux || darwin

package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// What one account can have of the daemon, whose memory and time are for all. Each limit is
// beyond what a person with max_sessions_per_user windows reaches while all of them roam;
// who reaches one waits, or loses the connections that were silent for longest.
const (
	// connectionsPerSession is how many connections an account may have for each session that
	// it may have: with redundant paths, a client keeps two. spareConnections is how many it
	// may have besides: those that clients have dialed and not chosen yet, and dead ones. A
	// connection costs 130 KiB.
	connectionsPerSession = 2
	spareConnections      = 64

	// maxGrown is by how many bytes the receive windows of an account's connections may
	// grow together, beyond what each has from the start: enough for two uploads that fill
	// a session's window. QUIC never makes a window smaller. If another connection needs one,
	// one that has not brought bulkBytes within bulkTime is closed: its client resumes.
	maxGrown  = 2 << 20
	bulkBytes = 64 << 10
	bulkTime  = time.Minute

	// maxLarge is how many large buffers the relays of an account may borrow at once: more are
	// not busy at a time, unless nobody reads what they copy.
	maxLarge = 32
)

// accounts limits what each account has. It is safe for concurrent use.
type accounts struct {
	sessions int // max_sessions_per_user

	mu    sync.Mutex
	byUID map[uint32]*accountUse // of accounts that have logged in since the start
}

func newAccounts(sessions int) *accounts {
	return &accounts{sessions: sessions, byUID: make(map[uint32]*accountUse)}
}

// An accountUse is what an account has.
type accountUse struct {
	borrowed chan struct{} // an element for each large buffer of its relays

	// Guarded by accounts.mu:
	members map[*member]bool
	grown   uint64 // by how many bytes their receive windows have grown
}

// of returns what an account has.
func (a *accounts) of(uid uint32) *accountUse {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ofLocked(uid)
}

func (a *accounts) ofLocked(uid uint32) *accountUse {
	u := a.byUID[uid]
	if u == nil {
		u = &accountUse{
			borrowed: make(chan struct{}, maxLarge),
			members:  make(map[*member]bool),
		}
		a.byUID[uid] = u
	}
	return u
}

// A member is a connection. It belongs to an account from its login on.
type member struct {
	close   func()
	heardAt atomic.Int64 // uptime
	bulkAt  atomic.Int64 // the same, when it had brought bulkBytes again, or its window has grown
	read    int          // bytes since bulkAt

	// Guarded by accounts.mu:
	account *accountUse // nil before the login, and after the end
	grown   uint64      // by how many bytes its receive window has grown
}

// processStart is when this process began.
var processStart = time.Now()

// uptime returns for how long this process has run, in nanoseconds. Unlike the time of day, it cannot be set.
func uptime() int64 { return int64(time.Since(processStart)) }

// heard records that the client has sent something.
func (m *member) heard() { m.heardAt.Store(uptime()) }

// brought records that a stream has brought bytes. It is called by one goroutine at a time.
func (m *member) brought(bytes int) {
	m.heard()
	if m.read += bytes; m.read >= bulkBytes {
		m.read = 0
		m.bulkAt.Store(m.heardAt.Load())
	}
}

// join makes a connection one of an account. If the account has too many, it closes the
// one that was silent for longest: its client has others, or resumes.
func (a *accounts) join(uid uint32, m *member) {
	m.heard()
	var victim *member
	a.mu.Lock()
	u := a.ofLocked(uid)
	if len(u.members) >= connectionsPerSession*a.sessions+spareConnections {
		for other := range u.members {
			if victim == nil || other.heardAt.Load() < victim.heardAt.Load() {
				victim = other
			}
		}
		a.leaveLocked(victim)
	}
	m.account = u
	u.members[m] = true
	a.mu.Unlock()
	if victim != nil {
		victim.close()
	}
}

// leave stops counting a connection. It may be called more than once.
func (a *accounts) leave(m *member) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leaveLocked(m)
}

func (a *accounts) leaveLocked(m *member) {
	if m.account == nil {
		return
	}
	m.account.grown -= m.grown
	delete(m.account.members, m)
	m.account, m.grown = nil, 0
}

// grow reports whether the receive window of a connection may grow by a number of bytes:
// never before the login. If other connections of the account have grown too much, it closes
// one of them that does not need it.
func (a *accounts) grow(m *member, bytes uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.account == nil {
		return false
	}
	if m.account.grown+bytes > maxGrown {
		if idle := m.account.idleLocked(m); idle != nil {
			a.leaveLocked(idle)
			go idle.close() // it may need the lock, and takes time
		}
	}
	if m.account.grown+bytes > maxGrown {
		return false
	}
	m.account.grown += bytes
	m.grown += bytes
	m.bulkAt.Store(uptime())
	return true
}

// idleLocked returns the connection of an account, other than m, that has grown and has not
// brought much for longest, but at least bulkTime, or nil.
func (u *accountUse) idleLocked(m *member) (idle *member) {
	before := uptime() - int64(bulkTime)
	for other := range u.members {
		if at := other.bulkAt.Load(); other != m && other.grown > 0 && at < before {
			idle, before = other, at
		}
	}
	return idle
}

// grow reports whether the receive window of the connection with the given context may
// grow.
func (s *Server) grow(ctx context.Context, bytes uint64) bool {
	return contained(s, false, func() bool { return s.accounts.grow(guestOf(ctx).member, bytes) })
}
