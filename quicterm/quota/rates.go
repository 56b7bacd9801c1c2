package quota

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates limit the rate of an event for each of many keys, by a token bucket a key.
type Rates[K comparable] struct {
	limit rate.Limit
	burst int

	mu      sync.Mutex
	buckets Recent[K, *rate.Limiter]
}

// NewRates returns Rates of so many events a second, and at once.
func NewRates[K comparable](perSecond float64, burst int) *Rates[K] {
	return &Rates[K]{limit: rate.Limit(perSecond), burst: burst}
}

// Of returns the bucket of a key.
func (r *Rates[K]) Of(key K) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	bucket, ok := r.buckets.Get(key)
	if !ok {
		bucket = rate.NewLimiter(r.limit, r.burst)
	}
	r.buckets.Put(key, bucket)
	return bucket
}

// Allow takes a token from a key's bucket and reports whether there was one.
func (r *Rates[K]) Allow(now time.Time, key K) bool { return r.Of(key).AllowN(now, 1) }

// Empty reports whether a key's bucket has no token. It does not make the key a recent one, nor does Low.
func (r *Rates[K]) Empty(now time.Time, key K) bool { return r.tokens(now, key) < 1 }

// Low reports whether a key's bucket is less than half full.
func (r *Rates[K]) Low(now time.Time, key K) bool { return r.tokens(now, key) < float64(r.burst)/2 }

func (r *Rates[K]) tokens(now time.Time, key K) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bucket, ok := r.buckets.Get(key); ok {
		return bucket.TokensAt(now)
	}
	return float64(r.burst)
}

// AllowAbove takes a token from a bucket and reports whether there was one beside reserve tokens, which are left
// to those who come before others.
func AllowAbove(bucket *rate.Limiter, now time.Time, reserve float64) bool {
	return bucket.TokensAt(now) >= reserve+1 && bucket.AllowN(now, 1)
}
