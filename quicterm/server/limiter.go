//go:build linux || darwin

package server

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A limiter limits the rate of an event for each of many keys. Each key has a token
// bucket. The limiter keeps the maxRecent to 2*maxRecent buckets that were used last:
// a key whose bucket is forgotten starts with a full one. It is safe for concurrent
// use.
type limiter[K comparable] struct {
	limit rate.Limit
	burst int

	mu          sync.Mutex
	recent, old map[K]*rate.Limiter // old buckets were not used since recent was empty
}

// maxRecent is how many buckets there are of each age.
const maxRecent = 2048

func newLimiter[K comparable](limit rate.Limit, burst int) *limiter[K] {
	return &limiter[K]{limit: limit, burst: burst, recent: make(map[K]*rate.Limiter)}
}

// allow takes a token from a key's bucket and reports whether there was one.
func (l *limiter[K]) allow(now time.Time, key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket := l.recent[key]
	if bucket == nil {
		if bucket = l.old[key]; bucket == nil {
			bucket = rate.NewLimiter(l.limit, l.burst)
		}
		if len(l.recent) == maxRecent {
			l.old, l.recent = l.recent, make(map[K]*rate.Limiter)
		}
		l.recent[key] = bucket
	}
	return bucket.AllowN(now, 1)
}

// low reports whether a key's bucket is less than half full.
func (l *limiter[K]) low(now time.Time, key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket := l.recent[key]
	if bucket == nil {
		bucket = l.old[key]
	}
	return bucket != nil && bucket.TokensAt(now) < float64(l.burst)/2
}

// sourceOf returns the source that a client's address belongs to: an IPv4 address, or
// an IPv6 /64, the least that a site is assigned (RFC 6177).
func sourceOf(client netip.Addr) netip.Prefix {
	ip := client.Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	prefix, _ := ip.Prefix(bits)
	return prefix
}

// A floodLog logs events that any client can cause any number of times: burst lines at
// once, then one a second. The key "suppressed" of a line says how many lines were not
// logged before it.
type floodLog struct {
	limit *rate.Limiter

	mu         sync.Mutex
	suppressed int
}

func newFloodLog(burst int) *floodLog { return &floodLog{limit: rate.NewLimiter(1, burst)} }

func (f *floodLog) warn(now time.Time, log *slog.Logger, text string, args ...any) {
	f.mu.Lock()
	if !f.limit.AllowN(now, 1) {
		f.suppressed++
		f.mu.Unlock()
		return
	}
	if f.suppressed > 0 {
		log = log.With("suppressed", f.suppressed)
		f.suppressed = 0
	}
	f.mu.Unlock()
	log.Warn(text, args...)
}
