package screen

import "unicode/utf8"

// A cell is the content of one column: a character or the index of a cluster in bits 0 to 20,
// clusterFlag, the kind, and a styleID in the upper half. The zero value is blank.
type cell uint64

const (
	charMask    cell = 1<<21 - 1
	clusterFlag cell = 1 << 21
	contentMask cell = clusterFlag | charMask // 0 in a blank
	wideFlag    cell = 1 << 22                // the character takes this cell and the next one
	spacerFlag  cell = 1 << 23                // the cell after a wide character
	styleShift       = 32
)

func newCell(r rune, id styleID) cell { return cell(r) | blank(id) }

// blank returns a cell without character.
func blank(id styleID) cell { return cell(id) << styleShift }

func (c cell) style() styleID { return styleID(c >> styleShift) }

// clusters keeps characters with combining marks, each combination once.
type clusters struct {
	list []string // index 0 is not used
	ids  map[string]cell
	free []cell
}

const (
	// maxCluster bounds the bytes of a character with its combining marks. Real ones take up to
	// 30; a program that adds marks without end must not take memory without end.
	maxCluster = 64
	// maxClusters is what fits into a cell.
	maxClusters = int(charMask)
)

// add returns the content of a cell that has a further character in it.
func (s *clusters) add(c cell, r rune) cell {
	var buf [maxCluster + utf8.UTFMax]byte
	text := utf8.AppendRune(s.appendText(buf[:0], c), r)
	if len(text) > maxCluster {
		return c
	}
	id, ok := s.ids[string(text)]
	if !ok {
		if id, ok = s.newID(); !ok {
			return c
		}
		s.list[id] = string(text)
		s.ids[s.list[id]] = id
	}
	return c&^contentMask | clusterFlag | id
}

func (s *clusters) newID() (id cell, ok bool) {
	if s.ids == nil {
		s.ids = make(map[string]cell)
		s.list = make([]string, 1)
	}
	if n := len(s.free); n > 0 {
		id = s.free[n-1]
		s.free = s.free[:n-1]
		return id, true
	}
	if len(s.list) > maxClusters {
		return 0, false
	}
	s.list = append(s.list, "")
	return cell(len(s.list) - 1), true
}

// appendText appends the characters of a cell.
func (s *clusters) appendText(b []byte, c cell) []byte {
	switch {
	case c&clusterFlag != 0:
		return append(b, s.list[c&charMask]...)
	case c&charMask != 0:
		return utf8.AppendRune(b, rune(c&charMask))
	}
	return b
}

func (s *clusters) size() int { return len(s.list) - len(s.free) }

// sweep frees the clusters that are not in use.
func (s *clusters) sweep(used []bool) {
	s.free = s.free[:0]
	for id := len(s.list) - 1; id > 0; id-- {
		if !used[id] {
			delete(s.ids, s.list[id])
			s.list[id] = ""
			s.free = append(s.free, cell(id))
		}
	}
}
