package sshlogin

import (
	"errors"
	"sync"
	"time"
)

var errTimeout = errors.New("the server took too long")

// A watchdog calls a function when a time has passed, less the time for which it was paused.
type watchdog struct {
	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration
	since time.Time // when it was started or continued
	late  bool
}

func newWatchdog(timeout time.Duration, expired func()) *watchdog {
	w := &watchdog{left: timeout, since: time.Now()}
	w.timer = time.AfterFunc(timeout, func() {
		w.mu.Lock()
		w.late = true
		w.mu.Unlock()
		expired()
	})
	return w
}

// pause stops the time until the function that it returns is called.
func (w *watchdog) pause() (resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.timer.Stop() {
		return func() {} // it has expired
	}
	w.left -= time.Since(w.since)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.since = time.Now()
		w.timer.Reset(w.left)
	}
}

// stop ends the watch, and reports whether the time had passed.
func (w *watchdog) stop() (late bool) {
	w.timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late
}
