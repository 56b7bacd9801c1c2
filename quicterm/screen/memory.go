package screen

import "unsafe"

const (
	// styleBytes is what a style takes: in the list, in the map, and what the map leaves free.
	styleBytes = 4 * int(unsafe.Sizeof(Style{}))
	// clusterBytes is what a character with combining marks takes at most, in list and map.
	clusterBytes = maxCluster + 64
)

// Memory returns about how many bytes of memory the screens, the scrollback and what their cells refer to take.
func (s *Screen) Memory() int {
	cells := 0
	for _, b := range []*buffer{s.main, s.alt} {
		if b != nil {
			cells += len(b.ring) * s.cols
		}
	}
	n := cells*int(unsafe.Sizeof(cell(0))) + s.history.size() + s.stay.memory() +
		s.styles.Size()*styleBytes + s.clusters.Size()*clusterBytes
	for _, h := range s.links.List {
		n += h.bytes()
	}
	return n
}

// Scrolled returns how many rows have left the main screen at its top, also those that are not
// in the scrollback any more.
func (s *Screen) Scrolled() uint64 { return s.history.pushed }

// bytes returns what a link takes, in list and map.
func (h Hyperlink) bytes() int { return 2*int(unsafe.Sizeof(h)) + len(h.URI) + len(h.Parameters) }
