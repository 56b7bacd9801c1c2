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

const (
	// maxCluster bounds the bytes of a character with its combining marks. Real ones take up to
	// 30; a program that adds marks without end must not take memory without end.
	maxCluster = 64
	// maxClusters is what fits into a cell.
	maxClusters = int(charMask)
)

// combined returns the content of a cell that has a further character in it.
func (s *Screen) combined(c cell, r rune) cell {
	var buf [maxCluster + utf8.UTFMax]byte
	text := utf8.AppendRune(s.appendText(buf[:0], c), r)
	if len(text) > maxCluster {
		return c
	}
	id, ok := s.clusters.IDs[string(text)] // this alone needs no memory for the string
	if !ok {
		if id, ok = s.clusters.ID(string(text), maxClusters); !ok {
			return c
		}
	}
	return c&^contentMask | clusterFlag | cell(id)
}

func (s *Screen) appendText(b []byte, c cell) []byte {
	switch {
	case c&clusterFlag != 0:
		return append(b, s.clusters.List[c&charMask]...)
	case c&charMask != 0:
		return utf8.AppendRune(b, rune(c&charMask))
	}
	return b
}
