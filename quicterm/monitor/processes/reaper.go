//go:build linux || darwin

package processes

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// A reaper waits for child processes after their end, so that none stays a zombie. It
// does so on SIGCHLD: a wait for each would block a thread.
type reaper struct {
	mu   sync.Mutex
	pids map[int]func()
}

// add registers a child process. No other code may wait for it. The reaper calls ended after its end.
func (r *reaper) add(pid int, ended func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pids == nil {
		r.pids = make(map[int]func())
	}
	r.pids[pid] = ended
	r.reapLocked() // it may have ended already
}

func (r *reaper) run(ctx context.Context) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			r.mu.Lock()
			r.reapLocked()
			r.mu.Unlock()
		}
	}
}

func (r *reaper) reapLocked() {
	for pid, ended := range r.pids {
		if got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); got == pid || err == syscall.ECHILD {
			delete(r.pids, pid)
			ended()
		}
	}
}
