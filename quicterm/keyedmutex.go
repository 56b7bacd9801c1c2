//go:build linux || darwin

package quicterm

import "sync"

// A keyedMutex is a mutex for each account, so that none has to wait for what
// another does slowly.
type keyedMutex struct {
	mu    sync.Mutex
	locks map[uint32]*sync.Mutex
}

// lock locks the mutex of an account and returns what unlocks it.
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
