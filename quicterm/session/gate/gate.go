// Package gate provides a mutex whose holders can wait for a condition until a context ends.
package gate

import (
	"context"
	"sync"
)

// A Gate guards state, and wakes goroutines that wait for a change of it. The zero value is
// an unlocked gate. It implements [sync.Locker].
type Gate struct {
	mu      sync.Mutex
	changed chan struct{} // closed by Changed; nil while no goroutine waits
}

// Lock locks the gate.
func (g *Gate) Lock() { g.mu.Lock() }

// Unlock unlocks the gate.
func (g *Gate) Unlock() { g.mu.Unlock() }

// Changed wakes all waiters, which look at their conditions again. The gate must be locked.
func (g *Gate) Changed() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// Wait blocks until done returns true or ctx ends, whose cause it then returns. The gate must be locked: it is so
// whenever done is called and when Wait returns, and unlocked in between. If done is true at once, Wait ignores ctx.
func (g *Gate) Wait(ctx context.Context, done func() bool) error {
	for !done() {
		if g.changed == nil {
			g.changed = make(chan struct{})
		}
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		g.mu.Lock()
		if ctx.Err() != nil && !done() {
			return context.Cause(ctx)
		}
	}
	return nil
}
