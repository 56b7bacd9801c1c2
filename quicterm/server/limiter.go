//go:build linux || darwin

package server

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A limiter limits the rate of an event for each of many keys. Each key has a token
// bucket; a key whose bucket is forgotten starts with a full one. It is safe for
// concurrent use.
type limiter[K comparable] struct {
	limit rate.Limit
	burst int

	mu      sync.Mutex
	buckets generations[K, *rate.Limiter]
}

func newLimiter[K comparable](limit rate.Limit, burst int) *limiter[K] {
	return &limiter[K]{limit: limit, burst: burst}
}

// allow takes a token from a key's bucket and reports whether there was one.
func (l *limiter[K]) allow(now time.Time, key K) bool { return l.allowN(now, key, 1) }

// allowN is allow for n tokens.
func (l *limiter[K]) allowN(now time.Time, key K, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, ok := l.buckets.get(key)
	if !ok {
		bucket = rate.NewLimiter(l.limit, l.burst)
	}
	l.buckets.put(key, bucket)
	return bucket.AllowN(now, n)
}

// empty reports whether a key's bucket has no token.
func (l *limiter[K]) empty(now time.Time, key K) bool { return l.tokens(now, key) < 1 }

// low reports whether a key's bucket is less than half full.
func (l *limiter[K]) low(now time.Time, key K) bool { return l.tokens(now, key) < float64(l.burst)/2 }

func (l *limiter[K]) tokens(now time.Time, key K) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bucket, ok := l.buckets.get(key); ok {
		return bucket.TokensAt(now)
	}
	return float64(l.burst)
}

// A generations is a map that keeps the maxRecent to 2*maxRecent entries that were put
// last. The zero value is empty.
type generations[K comparable, V any] struct {
	recent, old map[K]V // old entries were not put since recent was empty
}

// maxRecent is how many entries there are of each age.
const maxRecent = 2048

func (g *generations[K, V]) get(key K) (v V, ok bool) {
	if v, ok = g.recent[key]; !ok {
		v, ok = g.old[key]
	}
	return v, ok
}

func (g *generations[K, V]) put(key K, v V) {
	if _, ok := g.recent[key]; !ok && len(g.recent) == maxRecent || g.recent == nil {
		g.old, g.recent = g.recent, make(map[K]V)
	}
	g.recent[key] = v
}

// sourceOf returns the source that a client's address belongs to: an IPv4 address, or
// an IPv6 /64, the least that a network is assigned (RFC 6177).
func sourceOf(client netip.Addr) netip.Prefix { return prefixOf(client, 64) }

// siteOf returns the site that a client's address belongs to: an IPv4 address, or an IPv6
// /48, the most that a site is usually assigned (RFC 6177).
func siteOf(client netip.Addr) netip.Prefix { return prefixOf(client, 48) }

func prefixOf(client netip.Addr, bits int) netip.Prefix {
	ip := client.Unmap().WithZone("")
	if ip.Is4() {
		bits = 32
	}
	prefix, _ := ip.Prefix(bits)
	return prefix
}
