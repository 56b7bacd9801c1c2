//go:build linux || darwin

package server

import "sync"

// A keyedMutex is a mutex for each account, so that no account waits for another one.
type keyedMutex struct {
	mu    sync.Mutex
	locks map[uint32]*sync.Mutex
}

// lock locks the mutex of an account and returns the function that unlocks it.
func (k *keyedMutex) lock(uid uint32) (unlock func()) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = make(map[uint32]*sync.Mutex)
	}
	l := k.locks[uid]
	if l == nil {
		l = new(sync.Mutex)
		k.locks[uid] = l
	}
	k.mu.Unlock()
	l.Lock()
	return l.Unlock
}
