package screen

// A pool keeps each value once and gives it a small id, by which cells name styles and clusters, and styles
// name links. The zero value of K has the id 0.
type pool[K comparable] struct {
	list []K
	ids  map[K]uint32
	free []uint32
}

func newPool[K comparable]() pool[K] { return pool[K]{list: make([]K, 1), ids: make(map[K]uint32)} }

// id returns the id of a value. A new value gets one unless the pool has most of them already.
func (p *pool[K]) id(value K, most int) (id uint32, ok bool) {
	if id, ok = p.ids[value]; ok {
		return id, true
	}
	switch n := len(p.free); {
	case n > 0:
		id, p.free = p.free[n-1], p.free[:n-1]
	case len(p.list) > most:
		return 0, false
	default:
		id = uint32(len(p.list))
		p.list = append(p.list, value)
	}
	p.list[id], p.ids[value] = value, id
	return id, true
}

// size returns the number of values in use or not yet swept.
func (p *pool[K]) size() int { return len(p.list) - len(p.free) }

// sweep frees the ids that are not in use.
func (p *pool[K]) sweep(used []bool) {
	var none K
	p.free = p.free[:0]
	for id := len(p.list) - 1; id > 0; id-- {
		if !used[id] {
			delete(p.ids, p.list[id])
			p.list[id] = none
			p.free = append(p.free, uint32(id))
		}
	}
}
