//go:build linux || darwin

package server

import (
	"net/netip"
	"testing"
	"time"
)

func TestLimiter(t *testing.T) {
	l := newLimiter[string](10, 20)
	now := time.Unix(1_900_000_000, 0)
	count := func(key string, tries int, every time.Duration) (n int) {
		for range tries {
			if l.allow(now, key) {
				n++
			}
			now = now.Add(every)
		}
		return n
	}
	if l.low(now, "a") {
		t.Error("a new key's bucket is low")
	}
	if n := count("a", 100, 0); n != 20 {
		t.Errorf("%d of 100 at once, want 20", n)
	}
	if !l.low(now, "a") {
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

// The limiter keeps at most 2*maxRecent buckets, those of the keys that were used last.
func TestLimiterForgetsOldKeys(t *testing.T) {
	l := newLimiter[int](1, 1)
	now := time.Unix(1_900_000_000, 0)
	const busy = -1
	l.allow(now, busy)
	for key := range 100_000 {
		if !l.allow(now, key) {
			t.Fatalf("new key %d is refused", key)
		}
		if key%1000 == 0 && l.allow(now, busy) {
			t.Fatalf("a key that is in use was forgotten after %d others", key)
		}
		if n := len(l.buckets.recent) + len(l.buckets.old); n > 2*maxRecent {
			t.Fatalf("%d buckets are kept", n)
		}
	}
}

func TestSource(t *testing.T) {
	for addr, want := range map[string][2]string{
		"192.0.2.1:4433":            {"192.0.2.1/32", "192.0.2.1/32"},
		"[::ffff:192.0.2.1]:4433":   {"192.0.2.1/32", "192.0.2.1/32"},
		"[2001:db8:1:2:3:4:5:6]:99": {"2001:db8:1:2::/64", "2001:db8:1::/48"},
		"[fe80::1%lo]:99":           {"fe80::/64", "fe80::/48"},
	} {
		ip := netip.MustParseAddrPort(addr).Addr()
		if got := [2]string{sourceOf(ip).String(), siteOf(ip).String()}; got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
