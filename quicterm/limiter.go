//go:build linux || darwin

package quicterm

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A limiter limits how often something may happen for each of many keys: by a
// token bucket each, of which it remembers the last few thousand that were used.
// A key that it has forgotten begins anew. It is safe for concurrent use.
type limiter[K comparable] struct {
	limit rate.Limit
	burst int

	mu         sync.Mutex
	young, old map[K]*rate.Limiter // old ones are not used since young was empty
}

// maxYoung is how many keys there are of each age.
const maxYoung = 2048

func newLimiter[K comparable](limit rate.Limit, burst int) *limiter[K] {
	return &limiter[K]{limit: limit, burst: burst, young: make(map[K]*rate.Limiter)}
}

// allow takes a token from a key's bucket. It reports whether there was one.
func (l *limiter[K]) allow(now time.Time, key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket := l.young[key]
	if bucket == nil {
		if bucket = l.old[key]; bucket == nil {
			bucket = rate.NewLimiter(l.limit, l.burst)
		}
		if len(l.young) == maxYoung {
			l.old, l.young = l.young, make(map[K]*rate.Limiter)
		}
		l.young[key] = bucket
	}
	return bucket.AllowN(now, 1)
}

// low reports whether a key's bucket is less than half full.
func (l *limiter[K]) low(now time.Time, key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket := l.young[key]
	if bucket == nil {
		bucket = l.old[key]
	}
	return bucket != nil && bucket.TokensAt(now) < float64(l.burst)/2
}

// source returns what counts as one source of packets: an IPv4 address or, of
// IPv6, what one customer is given at least (RFC 6177).
func source(addr net.Addr) netip.Prefix {
	udp, ok := addr.(*net.UDPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := udp.AddrPort().Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	prefix, _ := ip.Prefix(bits)
	return prefix
}

// A floodLog logs what strangers can cause any number of times: a few lines at
// once, then one a second. The next line tells how many were left out.
type floodLog struct {
	limit *rate.Limiter

	mu     sync.Mutex
	missed int
}

func newFloodLog(burst int) *floodLog { return &floodLog{limit: rate.NewLimiter(1, burst)} }

func (f *floodLog) warn(now time.Time, log *slog.Logger, text string, args ...any) {
	f.mu.Lock()
	if !f.limit.AllowN(now, 1) {
		f.missed++
		f.mu.Unlock()
		return
	}
	if f.missed > 0 {
		args = append(args, "before", f.missed)
		f.missed = 0
	}
	f.mu.Unlock()
	log.Warn(text, args...)
}
