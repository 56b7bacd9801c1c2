// Package pool gives values small ids.
package pool

// A Pool keeps each value once and gives it a small id, by which cells name styles and clusters, and styles
// name links. The zero value of K has the id 0.
type Pool[K comparable] struct {
	List []K
	IDs  map[K]uint32
	free []uint32
}

// New returns an empty pool.
func New[K comparable]() Pool[K] { return Pool[K]{List: make([]K, 1), IDs: make(map[K]uint32)} }

// ID returns the id of a value. A new value gets one unless the pool has most of them already.
func (p *Pool[K]) ID(value K, most int) (id uint32, ok bool) {
	if id, ok = p.IDs[value]; ok {
		return id, true
	}
	switch n := len(p.free); {
	case n > 0:
		id, p.free = p.free[n-1], p.free[:n-1]
	case len(p.List) > most:
		return 0, false
	default:
		id = uint32(len(p.List))
		p.List = append(p.List, value)
	}
	p.List[id], p.IDs[value] = value, id
	return id, true
}

// Size returns the number of values in use or not yet swept.
func (p *Pool[K]) Size() int { return len(p.List) - len(p.free) }

// Sweep frees the IDs that are not in use.
func (p *Pool[K]) Sweep(used []bool) {
	var none K
	p.free = p.free[:0]
	for id := len(p.List) - 1; id > 0; id-- {
		if !used[id] {
			delete(p.IDs, p.List[id])
			p.List[id] = none
			p.free = append(p.free, uint32(id))
		}
	}
}
