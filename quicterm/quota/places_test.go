package quota

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever comes and goes: no more have places than there are, the counts are true, and a client that loses its place
// is no better than any that keeps one.
func TestPlacesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, now := rapid.IntRange(1, 6).Draw(t, "limit"), today
		places := NewPlaces(limit)
		var members []*Place
		count := func(of func(*Place) netip.Prefix, prefix netip.Prefix) (n int) {
			for _, c := range members {
				if of(c) == prefix {
					n++
				}
			}
			return n
		}
		source, site := func(c *Place) netip.Prefix { return c.Source }, func(c *Place) netip.Prefix { return c.Site }
		better := func(a, b *Place) bool { // a certainly keeps its place rather than b
			aSite, bSite := count(site, a.Site), count(site, b.Site)
			switch {
			case a.Leaving != b.Leaving:
				return b.Leaving
			case now.Before(a.Protected) != now.Before(b.Protected):
				return now.Before(a.Protected)
			case aSite != bSite:
				return aSite < bSite
			}
			return count(source, a.Source) < count(source, b.Source)
		}
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "pause")) * time.Millisecond)
				site, net := rapid.IntRange(0, 2).Draw(t, "site"), rapid.IntRange(0, 2).Draw(t, "net")
				client := netip.AddrFrom16([16]byte{0x20, 1, 5: byte(site), 7: byte(net)})
				c := &Place{Source: Source(client), Site: Site(client), Known: rapid.Bool().Draw(t, "known")}
				if rapid.Bool().Draw(t, "protected") {
					c.Protected = now.Add(time.Second)
				}
				full := places.Full()
				victim := places.Enter(now, c)
				if full != (victim != nil) {
					t.Fatalf("full: %v, victim: %v", full, victim)
				}
				for i, other := range members {
					if victim != nil && better(victim, other) {
						t.Fatalf("%+v loses its place, and not client %d, %+v", victim, i, other)
					}
				}
				members = append(remove(members, victim), c)
			},
			"deny": func(t *rapid.T) {
				if len(members) > 0 {
					rapid.SampledFrom(members).Draw(t, "client").Leaving = true
				}
			},
			"leave": func(t *rapid.T) {
				if len(members) > 0 {
					c := rapid.SampledFrom(members).Draw(t, "client")
					c.Leave()
					c.Leave()
					members = remove(members, c)
				}
			},
			"": func(t *rapid.T) {
				if len(members) > limit || places.Len() != len(members) || places.HalfFull() != (2*len(members) > limit) {
					t.Fatalf("%d of %d have places, want %d", places.Len(), limit, len(members))
				}
				for _, c := range members {
					sources, sites := count(source, c.Source), count(site, c.Site)
					if !c.In(places) || places.Count(c.Source) != sources || places.Count(c.Site) != sites {
						t.Fatalf("wrong counts for %+v", c)
					}
				}
				if len(members) == 0 && len(places.counts) > 0 {
					t.Fatalf("%v are counted", places.counts)
				}
			},
		})
	})
}

func remove(members []*Place, gone *Place) (left []*Place) {
	for _, c := range members {
		if c != gone {
			left = append(left, c)
		}
	}
	return left
}

func TestSource(t *testing.T) {
	for addr, want := range map[string][2]string{
		"192.0.2.1:4433":            {"192.0.2.1/32", "192.0.2.1/32"},
		"[::ffff:192.0.2.1]:4433":   {"192.0.2.1/32", "192.0.2.1/32"},
		"[2001:db8:1:2:3:4:5:6]:99": {"2001:db8:1:2::/64", "2001:db8:1::/48"},
		"[fe80::1%lo]:99":           {"fe80::/64", "fe80::/48"},
	} {
		ip := netip.MustParseAddrPort(addr).Addr()
		if got := [2]string{Source(ip).String(), Site(ip).String()}; got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
