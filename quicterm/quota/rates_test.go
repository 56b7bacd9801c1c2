package quota

import (
	"testing"
	"time"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"
)

var today = time.Unix(1_900_000_000, 0)

func TestRates(t *testing.T) {
	r, now := NewRates[string](10, 20), today
	count := func(key string, tries int, every time.Duration) (n int) {
		for range tries {
			if r.Allow(now, key) {
				n++
			}
			now = now.Add(every)
		}
		return n
	}
	if r.Low(now, "a") {
		t.Error("a new key's bucket is low")
	}
	if n := count("a", 100, 0); n != 20 {
		t.Errorf("%d of 100 at once, want 20", n)
	}
	if !r.Low(now, "a") || !r.Empty(now, "a") {
		t.Error("an empty bucket is not low")
	}
	if n := count("b", 20, 0); n != 20 {
		t.Errorf("%d of another key, want 20: keys must not share a bucket", n)
	}
	if n := count("a", 1000, 10*time.Millisecond); n < 99 || n > 101 {
		t.Errorf("%d of 1000 in ten seconds, want 100", n)
	}
	now = now.Add(time.Minute)
	if n := count("a", 50, 100*time.Millisecond); n != 50 {
		t.Errorf("%d of 50 that are within the limit", n)
	}
}

// At most 2*maxRecent buckets are kept, those of the keys that were used last.
func TestRatesForgetOldKeys(t *testing.T) {
	r := NewRates[int](1, 1)
	const busy = -1
	r.Allow(today, busy)
	for key := range 100_000 {
		if !r.Allow(today, key) {
			t.Fatalf("new key %d is refused", key)
		}
		if key%1000 == 0 && r.Allow(today, busy) {
			t.Fatalf("a key that is in use was forgotten after %d others", key)
		}
		if n := len(r.buckets.recent) + len(r.buckets.old); n > 2*maxRecent {
			t.Fatalf("%d buckets are kept", n)
		}
	}
}

// Whatever comes when, no key gets more than its burst and its rate in any time, and one that asks for less is never
// refused.
func TestRatesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond, burst := rapid.IntRange(1, 50).Draw(t, "rate"), rapid.IntRange(1, 20).Draw(t, "burst")
		r, now := NewRates[int](float64(perSecond), burst), today
		allowed := make(map[int][]time.Time)
		within := func(key, n int) bool { // n more, at every time since which that could be too many
			for i, at := range allowed[key] {
				most := float64(burst) + now.Sub(at).Seconds()*float64(perSecond) + 1e-6
				if float64(len(allowed[key])-i+n) > most {
					return false
				}
			}
			return true
		}
		for range rapid.IntRange(1, 300).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "pause")) * time.Millisecond)
			key := rapid.IntRange(0, 2).Draw(t, "key")
			if r.Allow(now, key) {
				if allowed[key] = append(allowed[key], now); !within(key, 0) {
					t.Fatalf("key %d: more than %d at once and %d a second", key, burst, perSecond)
				}
			} else if within(key, 1) && !nearly(r, now, key) {
				t.Fatalf("key %d is refused below %d at once and %d a second", key, burst, perSecond)
			}
		}
	})
}

// nearly reports whether a bucket lacks a token by a rounding error only.
func nearly(r *Rates[int], now time.Time, key int) bool { return r.tokens(now, key) > 1-1e-6 }

// A flood takes all of a bucket but the reserve, and those who may take that get their share at once.
func TestAllowAbove(t *testing.T) {
	const burst, reserve = 40, 20
	bucket := rate.NewLimiter(10, burst)
	flood := func(now time.Time) (n int) {
		for AllowAbove(bucket, now, reserve) {
			n++
		}
		return n
	}
	if n := flood(today); n != burst-reserve {
		t.Errorf("%d at once, want %d", n, burst-reserve)
	}
	for n := range reserve {
		if !AllowAbove(bucket, today, 0) {
			t.Fatalf("number %d of the reserve is refused", n)
		}
	}
	if AllowAbove(bucket, today, 0) {
		t.Error("more than there is")
	}
	if n := flood(today.Add(time.Second)); n != 0 {
		t.Errorf("%d while the reserve is not full", n)
	}
	if n := flood(today.Add(3 * time.Second)); n != 10 {
		t.Errorf("%d beside a full reserve, want 10", n)
	}
}
