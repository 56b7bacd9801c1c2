package migrate

import (
	"net/netip"
	glob "path"
	"slices"
	"time"
)

const (
	// maxWays is how many ways are tried in a round.
	maxWays = 6

	// firstFault is how long an interface is not returned to after its path
	// has failed while another worked. It doubles up to maxFault with each
	// failure: two weak networks take turns, but not all the time.
	firstFault = 30 * time.Second
	maxFault   = 16 * time.Minute

	// maxFaults is how many interfaces are remembered for their failures.
	maxFaults = 64
)

// A Way is how packets get from here to the server.
type Way struct {
	Remote    netip.AddrPort // of the server
	Interface string         // over which packets leave, "" if it is not known
	Source    netip.Addr     // from which they leave
	// Bound means that the socket is bound to the interface. Otherwise the
	// system chooses it, and may choose another at any time.
	Bound bool
}

// A fault is the memory of an interface whose paths have failed.
type fault struct {
	until time.Time // when it is as good as others again
	span  time.Duration
}

// survey takes note of the ways that there are now, and which paths have lost
// theirs.
func (l *Link) survey(now time.Time, ways []Way) {
	if !slices.Equal(ways, l.ways) {
		l.nextSpare, l.spareAfter = now, 0
	}
	l.ways = ways
	for _, p := range l.paths {
		chosen := p.way
		chosen.Bound = false
		if p.way.Bound && slices.Contains(ways, chosen) {
			continue // the system has come to choose the same
		}
		i := slices.IndexFunc(ways, func(w Way) bool {
			return w.Remote == p.way.Remote && w.Bound == p.way.Bound && (!w.Bound || w.Interface == p.way.Interface)
		})
		if i >= 0 && ways[i] == p.way {
			continue
		}
		if i >= 0 {
			p.way = ways[i]
			p.moved++
		}
		p.doubt(Moving)
	}
	for name, f := range l.faults {
		if len(l.faults) > maxFaults && !now.Before(f.until) {
			delete(l.faults, name)
		}
	}
	if l.state != Live {
		l.hurry(now)
	}
}

// blame remembers that an interface has failed while another worked. One that
// has no way any more begins anew when it is back.
func (l *Link) blame(now time.Time, name string) {
	if name == "" || !slices.ContainsFunc(l.ways, func(w Way) bool { return w.Interface == name }) {
		return
	}
	f := l.faults[name]
	if f == nil {
		if len(l.faults) >= maxFaults {
			return
		}
		f = new(fault)
		l.faults[name] = f
	}
	f.span = min(max(2*f.span, firstFault), maxFault)
	if now.Sub(f.until) > maxFault {
		f.span = firstFault
	}
	f.until = now.Add(f.span)
}

// rank orders ways: a lower one is better.
func (l *Link) rank(now time.Time, w Way) (rank [4]int) {
	if f := l.faults[w.Interface]; f != nil && !l.due(now, f.until) {
		rank[0] = 1
	}
	if l.avoided(w) {
		rank[1] = 1
	}
	rank[2] = len(l.cfg.Prefer)
	for i, pattern := range l.cfg.Prefer {
		if ok, _ := glob.Match(pattern, w.Interface); ok {
			rank[2] = i
			break
		}
	}
	if w.Bound { // the system has its reasons
		rank[3] = 1
	}
	return rank
}

func (l *Link) better(now time.Time, a, b Way) bool {
	ra, rb := l.rank(now, a), l.rank(now, b)
	return slices.Compare(ra[:], rb[:]) < 0
}

func (l *Link) avoided(w Way) bool {
	return slices.ContainsFunc(l.cfg.Avoid, func(pattern string) bool {
		ok, _ := glob.Match(pattern, w.Interface)
		return ok
	})
}

// candidates returns the ways to try, best first.
func (l *Link) candidates(now time.Time) []Way {
	var ways []Way
	for _, w := range l.ways {
		chosen := w
		chosen.Bound = false
		if !w.Bound || !slices.Contains(l.ways, chosen) {
			ways = append(ways, w)
		}
	}
	slices.SortStableFunc(ways, func(a, b Way) int {
		ra, rb := l.rank(now, a), l.rank(now, b)
		if c := slices.Compare(ra[:], rb[:]); c != 0 {
			return c
		}
		if (a.Remote == l.remote) != (b.Remote == l.remote) {
			if a.Remote == l.remote {
				return -1
			}
			return 1
		}
		return 0
	})
	return ways[:min(len(ways), maxWays)]
}

// withoutAvoided leaves out the ways that are not to be used while there are
// others.
func (l *Link) withoutAvoided(ways []Way) []Way {
	if others := slices.DeleteFunc(slices.Clone(ways), l.avoided); len(others) > 0 {
		return others
	}
	return ways
}
