package quota

import (
	"sync"
	"sync/atomic"
	"time"
)

// Shares bound what each key has: so many members, and how much these take together of something that a member takes
// more and more of, and gives back only when it leaves. Times are those of any clock that does not go back.
type Shares[K comparable] struct {
	members int
	amount  uint64
	idle    time.Duration

	mu    sync.Mutex
	byKey map[K]*share[K] // of keys that have had a member
}

type share[K comparable] struct {
	members map[*Member[K]]bool
	taken   uint64
}

// NewShares returns Shares of so many members and such an amount, for each key. A member that has not used what it has
// taken for longer than idle leaves for another one that needs it.
func NewShares[K comparable](members int, amount uint64, idle time.Duration) *Shares[K] {
	return &Shares[K]{members: members, amount: amount, idle: idle, byKey: make(map[K]*share[K])}
}

// A Member is one of a key from Join to Leave. The zero value is ready.
type Member[K comparable] struct {
	Close func() // for the caller, to end one that has left for another

	heardAt, usedAt atomic.Int64

	// Guarded by Shares.mu:
	of    *share[K] // or nil
	taken uint64
}

// Heard records that a member was heard.
func (m *Member[K]) Heard(now time.Duration) { m.heardAt.Store(int64(now)) }

// Used records that a member uses what it has taken.
func (m *Member[K]) Used(now time.Duration) { m.usedAt.Store(int64(now)) }

// Len returns how many members a key has, and Taken how much they have taken.
func (s *Shares[K]) Len(key K) int      { n, _ := s.of(key); return n }
func (s *Shares[K]) Taken(key K) uint64 { _, taken := s.of(key); return taken }

func (s *Shares[K]) of(key K) (members int, taken uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.byKey[key]; of != nil {
		return len(of.members), of.taken
	}
	return 0, 0
}

// Join makes a member one of a key. If that has too many, it returns the one that was heard longest ago, which has
// left for it.
func (s *Shares[K]) Join(now time.Duration, key K, m *Member[K]) (left *Member[K]) {
	m.Heard(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.byKey[key]
	if of == nil {
		of = &share[K]{members: make(map[*Member[K]]bool)}
		s.byKey[key] = of
	}
	if len(of.members) >= s.members {
		for other := range of.members {
			if left == nil || other.heardAt.Load() < left.heardAt.Load() {
				left = other
			}
		}
		left.leaveLocked()
	}
	m.of = of
	of.members[m] = true
	return left
}

// Leave gives back what a member has. It may be called more than once.
func (s *Shares[K]) Leave(m *Member[K]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.leaveLocked()
}

func (m *Member[K]) leaveLocked() {
	if m.of != nil {
		m.of.taken -= m.taken
		delete(m.of.members, m)
		m.of, m.taken = nil, 0
	}
}

// Take reports whether a member may take more: never before it has joined. It returns a member that has left for it,
// or nil: the one that has not used what it had for longest.
func (s *Shares[K]) Take(now time.Duration, m *Member[K], more uint64) (may bool, left *Member[K]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.of == nil {
		return false, nil
	}
	if m.of.taken+more > s.amount {
		before := int64(now - s.idle)
		for other := range m.of.members {
			if at := other.usedAt.Load(); other != m && other.taken > 0 && at < before {
				left, before = other, at
			}
		}
		if left != nil {
			left.leaveLocked()
		}
	}
	if m.of.taken+more > s.amount {
		return false, left
	}
	m.of.taken += more
	m.taken += more
	m.Used(now)
	return true, left
}
