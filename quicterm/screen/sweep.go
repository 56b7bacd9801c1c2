package screen

// minSweep is how many styles, clusters and links there may be before the unused ones are
// freed. Few programs have as many.
const minSweep = 1024

// sweep frees styles, clusters and links that no cell has, if there are many. If the scrollback alone
// keeps too many, its oldest half is forgotten until it does not.
func (s *Screen) sweep() {
	size := func() int { return s.styles.Size() + s.clusters.Size() + s.links.Size() }
	if size() < max(s.sweepAt, minSweep) {
		return
	}
	// There are at most twice as many at the next sweep.
	for s.free() > s.limits.Bytes/2 {
		s.history.drop((s.history.lines + 1) / 2)
	}
	// The next sweep is due after as many new ones as are left, so that its cost is in
	// proportion to what the program sends.
	s.sweepAt = 2 * size()
}

// free frees what no cell has. It returns how many bytes the styles and links take that only the scrollback has.
func (s *Screen) free() (scrollback int) {
	s.stay = nil // it has styles too
	usedStyles := make([]bool, len(s.styles.List))
	usedClusters := make([]bool, len(s.clusters.List))
	usedLinks := make([]bool, len(s.links.List))
	usedLinks[s.pen.Link] = true
	for _, b := range []*buffer{s.main, s.alt} {
		if b == nil {
			continue
		}
		usedLinks[b.saved.pen.Link] = true
		for i := range b.ring {
			for _, c := range b.ring[i].cells {
				usedStyles[c.style()] = true
				usedLinks[s.styles.List[c.style()].Link] = true
				if c&clusterFlag != 0 {
					usedClusters[c&charMask] = true
				}
			}
		}
	}
	for i, b := range s.history.blocks {
		data := b.data
		if i == 0 {
			data = data[b.start(s.history.gone):]
		}
		eachRun(data, func(id styleID, _ []byte) {
			if usedStyles[id] {
				return
			}
			usedStyles[id] = true
			scrollback += styleBytes
			if l := s.styles.List[id].Link; !usedLinks[l] {
				usedLinks[l] = true
				scrollback += s.links.List[l].bytes()
			}
		})
	}
	s.styles.sweep(usedStyles)
	s.clusters.Sweep(usedClusters)
	s.links.Sweep(usedLinks)
	s.penKnown = false
	return scrollback
}
