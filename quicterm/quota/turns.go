package quota

import (
	"context"
	"slices"
	"sync"
)

// Turns bound how much is done at a time, in all and for each key. The key that had its last turn longest ago has the
// next one, and of its turns the one that waits longest.
type Turns[K comparable] struct {
	all, each int // 0 is no bound

	mu      sync.Mutex
	waiting []*turn[K] // in the order of their arrival
	running int
	byKey   map[K]int         // that run
	served  Recent[K, uint64] // count at the last turn of a key
	count   uint64            // of turns so far
}

// NewTurns returns Turns of which at most all are taken at a time, and each for a key; 0 is no bound.
func NewTurns[K comparable](all, each int) *Turns[K] {
	return &Turns[K]{all: all, each: each, byKey: make(map[K]int)}
}

// A turn waits, then is taken, then ends.
type turn[K comparable] struct {
	ready chan struct{}
	key   K
}

// Take blocks until a turn of a key has come. The caller calls end. An error is that of ctx.
func (t *Turns[K]) Take(ctx context.Context, key K) (end func(), err error) {
	w := t.enter(key)
	select {
	case <-w.ready:
		return func() { t.leave(w) }, nil
	case <-ctx.Done():
		t.leave(w)
		return nil, context.Cause(ctx)
	}
}

// Try is Take if a turn of a key can come at once.
func (t *Turns[K]) Try(key K) (end func(), ok bool) {
	w := t.enter(key)
	select {
	case <-w.ready:
		return func() { t.leave(w) }, true
	default:
		t.leave(w)
		return nil, false
	}
}

// enter begins to wait for a turn. The caller calls leave.
func (t *Turns[K]) enter(key K) *turn[K] {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &turn[K]{ready: make(chan struct{}), key: key}
	t.waiting = append(t.waiting, w)
	t.startLocked()
	return w
}

// leave ends a turn, or the wait for it.
func (t *Turns[K]) leave(w *turn[K]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		return
	}
	t.running--
	if t.byKey[w.key]--; t.byKey[w.key] == 0 {
		delete(t.byKey, w.key)
	}
	t.startLocked()
}

// startLocked lets as many turns come as may.
func (t *Turns[K]) startLocked() {
	for t.all == 0 || t.running < t.all {
		next := t.nextLocked()
		if next == nil {
			return
		}
		t.waiting = slices.DeleteFunc(t.waiting, func(w *turn[K]) bool { return w == next })
		t.running++
		t.byKey[next.key]++
		t.count++
		t.served.Put(next.key, t.count)
		close(next.ready)
	}
}

func (t *Turns[K]) nextLocked() (next *turn[K]) {
	var last uint64
	for _, w := range t.waiting {
		served, _ := t.served.Get(w.key)
		if (t.each == 0 || t.byKey[w.key] < t.each) && (next == nil || served < last) {
			next, last = w, served
		}
	}
	return next
}
