//go:build linux || darwin

package server

import (
	"context"
	"net/netip"
	"time"
)

// A pending is a client that has not proven anything yet.
type pending struct {
	source, site netip.Prefix
	evicted      context.Context // ends when the client loses its place
	evict        func()

	known     bool    // clients of its source have logged in, or an account accepts its key
	roster    *roster // that has it; nil if it does not count any more
	since     time.Time
	protected time.Time // until then, unprotected clients lose their places first
	leaving   bool      // it is denied, and only has to read that
}

// protectedTime is how long a stranger of a site that does not connect often is protected: some round trips.
const protectedTime = time.Second

// A roster is a bounded set of clients, with their numbers by source and by site.
type roster struct {
	limit   int
	members map[*pending]struct{}
	counts  map[netip.Prefix]int
}

func newRoster(limit int) *roster {
	return &roster{limit, make(map[*pending]struct{}), make(map[netip.Prefix]int)}
}

func (r *roster) full() bool { return len(r.members) >= r.limit }

func (r *roster) add(p *pending) {
	p.roster = r
	r.members[p] = struct{}{}
	r.counts[p.source]++
	if p.site != p.source {
		r.counts[p.site]++
	}
}

func (r *roster) remove(p *pending) {
	p.roster = nil
	delete(r.members, p)
	r.uncount(p.source)
	if p.site != p.source {
		r.uncount(p.site)
	}
}

func (r *roster) uncount(prefix netip.Prefix) {
	if r.counts[prefix]--; r.counts[prefix] == 0 {
		delete(r.counts, prefix)
	}
}

// victim returns the client that loses its place first: a leaving one, else one that is not protected,
// else the oldest of the source that has most, of the site that has most; among equals, one that is not
// known. Only strangers are protected. So in the other classes no flood evicts a client of a source that
// has fewer places than the flood's sources, nor a known one whose source has as many: a person may need
// a minute to touch a key. And no flood of strangers, of however many sources, evicts a new stranger
// while some of the flood's are not protected.
func (r *roster) victim(now time.Time) (victim *pending) {
	for p := range r.members {
		if victim == nil || r.before(p, victim, now) {
			victim = p
		}
	}
	return victim
}

// before reports whether a loses its place before b does.
func (r *roster) before(a, b *pending, now time.Time) bool {
	switch {
	case a.leaving != b.leaving:
		return a.leaving
	case now.Before(a.protected) != now.Before(b.protected):
		return now.Before(b.protected)
	case r.counts[a.site] != r.counts[b.site]:
		return r.counts[a.site] > r.counts[b.site]
	case r.counts[a.source] != r.counts[b.source]:
		return r.counts[a.source] > r.counts[b.source]
	case a.known != b.known:
		return b.known
	}
	return a.since.Before(b.since)
}
