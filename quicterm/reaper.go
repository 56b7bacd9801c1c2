//go:build linux || darwin

package quicterm

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// A reaper takes note of the end of child processes, so that the kernel can
// forget them. Waiting for each in the usual way would take a thread.
type reaper struct {
	mu   sync.Mutex
	pids map[int]struct{}
}

// add has a process reaped when it ends. Nobody else may wait for it.
func (r *reaper) add(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pids == nil {
		r.pids = make(map[int]struct{})
	}
	r.pids[pid] = struct{}{}
	r.reapLocked() // it may have ended already
}

// run reaps until the context ends.
func (r *reaper) run(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
			r.mu.Lock()
			r.reapLocked()
			r.mu.Unlock()
		}
	}
}

func (r *reaper) reapLocked() {
	for pid := range r.pids {
		if got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); got == pid || err == syscall.ECHILD {
			delete(r.pids, pid)
		}
	}
}
