//go:build linux || darwin

package server

import (
	"context"
	"time"

	"github.com/quicterm/quicterm/quicterm/quota"
)

// What one account can have of the daemon, whose memory and time are for all. Each limit is
// beyond what a person with max_sessions_per_user windows reaches while all of them roam;
// who reaches one waits, or loses the connections that were silent for longest.
const (
	// connectionsPerSession is how many connections an account may have for each session that
	// it may have: with redundant paths, a client keeps two. spareConnections is how many it
	// may have besides: those for bulk data, four for each client that has much, those that
	// clients have dialed and not chosen yet, and dead ones. A connection costs 130 KiB.
	connectionsPerSession = 2
	spareConnections      = 64

	// maxGrown is by how many bytes the receive windows of an account's connections may
	// grow together, beyond what each has from the start: enough for two uploads that fill
	// a session's window. QUIC never makes a window smaller. If another connection needs one,
	// one that has not brought bulkBytes within bulkTime is closed: its client resumes.
	maxGrown  = 2 << 20
	bulkBytes = 64 << 10

	// maxLarge is how many large buffers the relays of an account may borrow at once: more are
	// not busy at a time, unless nobody reads what they copy.
	maxLarge = 32
)

// accounts limits what each account has. It is safe for concurrent use.
type accounts struct {
	connections *quota.Shares[uint32] // and their receive windows
	large       *quota.Turns[uint32]  // large buffers of relays
}

func newAccounts(sessions int) *accounts {
	return &accounts{
		connections: quota.NewShares[uint32](connectionsPerSession*sessions+spareConnections, maxGrown, bulkTime),
		large:       quota.NewTurns[uint32](0, maxLarge),
	}
}

// A member is a connection. It belongs to an account from its login on.
type member struct {
	quota.Member[uint32]
	read int // bytes since it had brought bulkBytes again
}

// heard records that the client has sent something.
func (m *member) heard() { m.Heard(uptime()) }

// brought records that a stream has brought bytes. It is called by one goroutine at a time.
func (m *member) brought(bytes int) {
	m.heard()
	if m.read += bytes; m.read >= bulkBytes {
		m.read = 0
		m.Used(uptime())
	}
}

// processStart is when this process began.
var processStart = time.Now()

// uptime returns for how long this process has run. Unlike the time of day, it cannot be set.
func uptime() time.Duration { return time.Since(processStart) }

// join makes a connection one of an account. If the account has too many, it closes the
// one that was silent for longest: its client has others, or resumes.
func (a *accounts) join(uid uint32, m *member) {
	if left := a.connections.Join(uptime(), uid, &m.Member); left != nil {
		left.Close()
	}
}

// leave stops counting a connection. It may be called more than once.
func (a *accounts) leave(m *member) { a.connections.Leave(&m.Member) }

// grow reports whether the receive window of a connection may grow by a number of bytes: never before the login. If
// other connections of the account have grown too much, it closes one of them that does not need it.
func (a *accounts) grow(m *member, bytes uint64) bool {
	may, left := a.connections.Take(uptime(), &m.Member, bytes)
	if left != nil {
		go left.Close() // it takes time
	}
	return may
}

// grow reports whether the receive window of the connection with the given context may grow.
func (s *Server) grow(ctx context.Context, bytes uint64) bool {
	return contained(s, false, func() bool { return s.accounts.grow(guestOf(ctx).member, bytes) })
}
