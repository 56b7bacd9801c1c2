package screen

// minSweep is how many styles, clusters and links there may be before the unused ones are
// freed. Few programs have as many.
const minSweep = 1024

// sweep frees styles, clusters and links that no cell has, if there are many.
func (s *Screen) sweep() {
	if s.styles.size()+s.clusters.size()+s.links.size() < max(s.sweepAt, minSweep) {
		return
	}
	usedStyles := make([]bool, len(s.styles.list))
	usedClusters := make([]bool, len(s.clusters.list))
	for _, b := range []*buffer{s.main, s.alt} {
		if b == nil {
			continue
		}
		for i := range b.ring {
			for _, c := range b.ring[i].cells {
				usedStyles[c.style()] = true
				if c&clusterFlag != 0 {
					usedClusters[c&charMask] = true
				}
			}
		}
	}
	for _, b := range s.history.blocks {
		eachRun(b.data, func(id styleID, _ []byte) { usedStyles[id] = true })
	}
	usedLinks := make([]bool, max(len(s.links.list), 1))
	for id, used := range usedStyles {
		if used {
			usedLinks[s.styles.list[id].Link] = true
		}
	}
	usedLinks[s.pen.Link] = true
	usedLinks[s.main.saved.pen.Link] = true
	if s.alt != nil {
		usedLinks[s.alt.saved.pen.Link] = true
	}
	s.styles.sweep(usedStyles)
	s.clusters.sweep(usedClusters)
	s.links.sweep(usedLinks)
	s.penKnown = false
	// The next sweep is due after as many new ones as are left, so that its cost is in
	// proportion to what the program sends.
	s.sweepAt = 2 * (s.styles.size() + s.clusters.size() + s.links.size())
}
