// Package floodlog logs events that a peer can cause any number of times: a few lines at once, then one a second, which
// says how many were left out.
package floodlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A Log logs a burst of lines at once, then one a second. The key "suppressed" of a line says how
// many lines were not logged before it. It is safe for concurrent use.
type Log struct {
	limit *rate.Limiter

	mu         sync.Mutex
	suppressed int
}

// New returns a Log of a number of lines at once.
func New(burst int) *Log { return &Log{limit: rate.NewLimiter(1, burst)} }

// Limited logs a line at level warn, unless there were too many.
func (f *Log) Limited(now time.Time, log *slog.Logger, text string, args ...any) {
	f.limited(now, log, slog.LevelWarn, text, args)
}

// LimitedInfo is Limited at level info.
func (f *Log) LimitedInfo(now time.Time, log *slog.Logger, text string, args ...any) {
	f.limited(now, log, slog.LevelInfo, text, args)
}

func (f *Log) limited(now time.Time, log *slog.Logger, level slog.Level, text string, args []any) {
	allowed, suppressed := f.allow(now)
	if !allowed {
		return
	}
	if suppressed > 0 {
		log = log.With("suppressed", suppressed)
	}
	log.Log(context.Background(), level, text, args...)
}

// allow reports whether a line may be logged, and how many were not logged before it.
func (f *Log) allow(now time.Time) (allowed bool, suppressed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.limit.AllowN(now, 1) {
		f.suppressed++
		return false, 0
	}
	suppressed, f.suppressed = f.suppressed, 0
	return true, suppressed
}
