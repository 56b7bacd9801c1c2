//go:build linux || darwin

package processes

import (
	"context"
	"sync"
)

// Slots bound how much is done for each account at once, so that no account waits for another
// one. They are safe for concurrent use.
type Slots struct {
	mu       sync.Mutex
	accounts map[uint32]*accountSlots
}

type accountSlots struct {
	taken chan struct{}
	users int // that have a slot or wait for one
}

// Take blocks while the account has limit Slots, which is always the same number, or returns
// why ctx has ended.
func (s *Slots) Take(ctx context.Context, uid uint32, limit int) (release func(), err error) {
	s.mu.Lock()
	a := s.accounts[uid]
	if a == nil {
		if s.accounts == nil {
			s.accounts = make(map[uint32]*accountSlots)
		}
		a = &accountSlots{taken: make(chan struct{}, limit)}
		s.accounts[uid] = a
	}
	a.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if a.users--; a.users == 0 {
			delete(s.accounts, uid)
		}
	}
	select {
	case a.taken <- struct{}{}:
		return func() { <-a.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
