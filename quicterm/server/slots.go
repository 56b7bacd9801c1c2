//go:build linux || darwin

package server

import (
	"context"
	"sync"
)

// slots let maxAsks holders of each account be asked at once. They are safe for concurrent use.
type slots struct {
	mu       sync.Mutex
	accounts map[uint32]*accountSlots
}

type accountSlots struct {
	taken chan struct{}
	users int // that have a slot or wait for one
}

// take blocks until the account has a free slot, or returns why ctx has ended.
func (s *slots) take(ctx context.Context, uid uint32) (release func(), err error) {
	s.mu.Lock()
	a := s.accounts[uid]
	if a == nil {
		if s.accounts == nil {
			s.accounts = make(map[uint32]*accountSlots)
		}
		a = &accountSlots{taken: make(chan struct{}, maxAsks)}
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
