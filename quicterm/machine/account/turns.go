//go:build linux || darwin

package account

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxCommands bounds how many commands run at a time for names that were not found
	// before, and sourceCommands those of one source. commandRate bounds how many start per
	// second, and commandBurst how many at once. A machine finds some hundred names per second;
	// a server with a login of a new name more often than this has its clients wait.
	maxCommands, sourceCommands = 4, 2
	commandRate, commandBurst   = 20, 40

	// maxServed bounds how many sources are remembered.
	maxServed = 1024
)

type sourceKey struct{}

// WithSource returns a context for lookups on behalf of a source of the network: lookups of
// many unknown names by some sources delay those of another one little.
func WithSource(ctx context.Context, source string) context.Context {
	return context.WithValue(ctx, sourceKey{}, source)
}

func sourceOf(ctx context.Context) string {
	source, _ := ctx.Value(sourceKey{}).(string)
	return source
}

// turns are the commands that look for names that may not exist. The source that had its last
// turn longest ago has the next one. The zero value is ready to use. It is safe for concurrent
// use.
type turns struct {
	mu       sync.Mutex
	starts   *rate.Limiter
	retry    *time.Timer // until the next may start, or nil
	waiting  []*turn     // in the order of their arrival
	running  int
	bySource map[string]int // that run
	served   map[string]int // count at the last turn of a source
	count    int            // of turns so far
}

// A turn is that of a command, on behalf of one source or more.
type turn struct {
	ready   chan struct{} // closed when the command may start
	sources []string
	source  string // whose turn it is, once it is ready
}

// enter makes a command wait for its turn. The caller calls leave.
func (t *turns) enter(source string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.starts == nil {
		t.starts = rate.NewLimiter(commandRate, commandBurst)
		t.bySource, t.served = make(map[string]int), make(map[string]int)
	}
	w := &turn{ready: make(chan struct{}), sources: []string{source}}
	t.waiting = append(t.waiting, w)
	t.startLocked()
	return w
}

// share makes a command one of another source as well.
func (t *turns) share(w *turn, source string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(w.sources, source) {
		w.sources = append(w.sources, source)
		t.startLocked()
	}
}

// leave ends a command, or its wait.
func (t *turns) leave(w *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		return
	}
	t.running--
	if t.bySource[w.source]--; t.bySource[w.source] == 0 {
		delete(t.bySource, w.source)
	}
	t.startLocked()
}

// startLocked lets commands start, as many as may.
func (t *turns) startLocked() {
	for t.running < maxCommands && t.retry == nil {
		next := t.nextLocked()
		if next == nil {
			return
		}
		if !t.starts.Allow() {
			t.retry = time.AfterFunc(time.Second/commandRate, func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				t.retry = nil
				t.startLocked()
			})
			return
		}
		t.waiting = slices.DeleteFunc(t.waiting, func(w *turn) bool { return w == next })
		t.running++
		t.bySource[next.source]++
		t.count++
		t.served[next.source] = t.count
		for source, at := range t.served {
			if at <= t.count-maxServed {
				delete(t.served, source)
			}
		}
		close(next.ready)
	}
}

// nextLocked returns the command that has the next turn, and sets its source.
func (t *turns) nextLocked() (next *turn) {
	for _, w := range t.waiting {
		for _, source := range w.sources {
			if t.bySource[source] < sourceCommands && (next == nil || t.served[source] < t.served[next.source]) {
				next, w.source = w, source
			}
		}
	}
	return next
}
