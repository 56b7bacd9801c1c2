package quota

// maxRecent is how many entries of each age a [Recent] keeps.
const maxRecent = 2048

// A Recent is a map that keeps the maxRecent to 2*maxRecent entries that were put last. The zero value is empty.
type Recent[K comparable, V any] struct {
	recent, old map[K]V // old entries were not put since recent was empty
}

// Get returns the value of a key, if it is kept.
func (r *Recent[K, V]) Get(key K) (v V, ok bool) {
	if v, ok = r.recent[key]; !ok {
		v, ok = r.old[key]
	}
	return v, ok
}

// Put sets the value of a key, and makes it the latest.
func (r *Recent[K, V]) Put(key K, v V) {
	if _, ok := r.recent[key]; !ok && len(r.recent) == maxRecent || r.recent == nil {
		r.old, r.recent = r.recent, make(map[K]V)
	}
	r.recent[key] = v
}
