package quota

import (
	"net/netip"
	"time"
)

// A Place is that of a client, which is in one [Places] at most. The caller sets all but what Places keeps.
type Place struct {
	Source, Site netip.Prefix

	Known     bool      // it keeps the place against equal ones that are not
	Leaving   bool      // it only has to read that it is denied
	Protected time.Time // until then, unprotected clients lose their places first
	Evict     func()    // for the caller, to end a client that has lost its place

	in    *Places
	since time.Time
}

// In reports whether the client is in p.
func (c *Place) In(p *Places) bool { return c.in == p }

// Leave gives the place up. It does nothing if the client has none.
func (c *Place) Leave() {
	if c.in != nil {
		c.in.remove(c)
	}
}

// Places are a bounded set of clients, with their numbers by source and by site.
type Places struct {
	limit   int
	members map[*Place]struct{}
	counts  map[netip.Prefix]int
}

// NewPlaces returns so many places.
func NewPlaces(limit int) *Places {
	return &Places{limit, make(map[*Place]struct{}), make(map[netip.Prefix]int)}
}

// Len returns how many places are taken.
func (p *Places) Len() int { return len(p.members) }

// Full reports whether all places are taken.
func (p *Places) Full() bool { return len(p.members) >= p.limit }

// HalfFull reports whether more than half of the places are taken.
func (p *Places) HalfFull() bool { return 2*len(p.members) > p.limit }

// Count returns how many clients of a source or of a site have a place.
func (p *Places) Count(prefix netip.Prefix) int { return p.counts[prefix] }

// Enter gives a client a place, and takes the one that it has. If all are taken, it returns the client that has lost
// its place: a leaving one, else one that is not protected, else the oldest of the source that has most, of the site
// that has most; among equals, one that is not known. So no flood evicts a client of a source that has fewer places
// than the flood's sources, nor a known one whose source has as many: a person may need a minute to touch a key. And
// no flood, of however many sources, evicts a protected client while some of the flood's are not.
func (p *Places) Enter(now time.Time, c *Place) (victim *Place) {
	c.Leave()
	if p.Full() {
		for other := range p.members {
			if victim == nil || p.before(other, victim, now) {
				victim = other
			}
		}
		victim.Leave()
	}
	c.since = now
	p.Add(c)
	return victim
}

// Add gives a client that has no place one, however many are taken.
func (p *Places) Add(c *Place) {
	c.in = p
	p.members[c] = struct{}{}
	p.count(c, 1)
}

func (p *Places) remove(c *Place) {
	c.in = nil
	delete(p.members, c)
	p.count(c, -1)
}

func (p *Places) count(c *Place, n int) {
	for i, prefix := range [...]netip.Prefix{c.Source, c.Site} {
		if i == 1 && prefix == c.Source {
			continue // an IPv4 address is both
		}
		if p.counts[prefix] += n; p.counts[prefix] == 0 {
			delete(p.counts, prefix)
		}
	}
}

// before reports whether a loses its place before b does.
func (p *Places) before(a, b *Place, now time.Time) bool {
	switch {
	case a.Leaving != b.Leaving:
		return a.Leaving
	case now.Before(a.Protected) != now.Before(b.Protected):
		return now.Before(b.Protected)
	case p.counts[a.Site] != p.counts[b.Site]:
		return p.counts[a.Site] > p.counts[b.Site]
	case p.counts[a.Source] != p.counts[b.Source]:
		return p.counts[a.Source] > p.counts[b.Source]
	case a.Known != b.Known:
		return b.Known
	}
	return a.since.Before(b.since)
}
