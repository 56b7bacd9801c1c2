package screen

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/screen/marks"
)

// A history keeps the rows that left the main screen at its top, packed: for each run of cells of one style the
// style's id, the number of bytes of its text, and the text, in which a zero byte is a blank. Rows are packed into
// blocks, of which the oldest goes as soon as no row of it is wanted.
type history struct {
	blocks []*block
	gone   int // rows of the first block that were dropped
	lines  int // rows
	bytes  int // taken by blocks
	pushed uint64
}

type block struct {
	data []byte
	rows []packed
}

type packed struct {
	end  uint32 // of the row in data
	mark marks.Row
	line uint64 // twice the id of the line, and 1 more if the row is wrapped
}

const (
	// blockBytes is the size of a block. A row that is longer has a block of its own.
	blockBytes = 16 << 10
	// blockRows bounds the rows of a block: empty ones take nothing of its bytes.
	blockRows = 1 << 10
	// packedBytes is the size of a packed, for the limit.
	packedBytes = 16
)

func (h *history) clear() { *h = history{pushed: h.pushed} }

// push adds a row at the end, and drops the oldest ones beyond the limits.
func (h *history) push(s *Screen, r *row) {
	data := s.packed[:0]
	n := len(r.cells)
	for n > 0 && r.cells[n-1] == 0 {
		n--
	}
	for x := 0; x < n; {
		id := r.cells[x].style()
		data = binary.AppendUvarint(data, uint64(id))
		mark := len(data)
		data = append(data, 0)
		x, data = s.packRun(r.cells[:n], x, data)
		data = setLength(data, mark)
	}
	s.packed = data

	n = len(h.blocks)
	if n == 0 || len(h.blocks[n-1].data)+len(data) > cap(h.blocks[n-1].data) || len(h.blocks[n-1].rows) == blockRows {
		size := max(blockBytes, len(data))
		if n == 0 { // the history of a session that prints little stays small
			size = max(blockBytes/8, len(data))
		}
		h.blocks = append(h.blocks, &block{data: make([]byte, 0, size)})
		h.bytes += size
	}
	b := h.blocks[len(h.blocks)-1]
	b.data = append(b.data, data...)
	line := 2 * r.line
	if r.wrapped {
		line++
	}
	b.rows = append(b.rows, packed{end: uint32(len(b.data)), mark: r.mark, line: line})
	h.lines++
	h.pushed++
	h.trim(s.limits)
}

// packRun appends the text of the cells from x that have one style, and returns where they end.
func (s *Screen) packRun(cells []cell, x int, data []byte) (end int, _ []byte) {
	base := blank(cells[x].style())
	for ; x < len(cells); x++ {
		// Without the style, an ASCII character and a blank are less than 0x80, other characters
		// and flags are more, and another style is more than all those.
		switch c := cells[x] ^ base; {
		case c < utf8.RuneSelf:
			data = append(data, byte(c))
		case c >= 1<<styleShift:
			return x, data
		case c&spacerFlag == 0:
			data = s.appendText(data, c)
		}
	}
	return x, data
}

// setLength writes the length of the text after mark into the byte at mark: it moves the text
// if the length needs more.
func setLength(data []byte, mark int) []byte {
	n := len(data) - mark - 1
	if n < 0x80 {
		data[mark] = byte(n)
		return data
	}
	var length [binary.MaxVarintLen64]byte
	size := binary.PutUvarint(length[:], uint64(n))
	data = append(data, length[:size-1]...)
	copy(data[mark+size:], data[mark+1:mark+1+n])
	copy(data[mark:], length[:size])
	return data
}

// trim drops the oldest rows beyond the limits.
func (h *history) trim(l Limits) {
	h.drop(h.lines - l.Lines)
	for h.size() > l.Bytes && len(h.blocks) > 1 {
		h.drop(len(h.blocks[0].rows) - h.gone)
	}
}

func (h *history) size() int { return h.bytes + packedBytes*h.lines }

// drop forgets the n oldest rows.
func (h *history) drop(n int) {
	for n > 0 {
		b := h.blocks[0]
		k := min(n, len(b.rows)-h.gone)
		n -= k
		h.lines -= k
		if h.gone += k; h.gone == len(b.rows) {
			h.bytes -= cap(b.data)
			h.blocks[0] = nil
			h.blocks = h.blocks[1:]
			h.gone = 0
		}
	}
}

// start returns where a row begins in data.
func (b *block) start(i int) uint32 {
	if i == 0 {
		return 0
	}
	return b.rows[i-1].end
}

// find returns where the row i after the oldest one is.
func (h *history) find(i int) (b *block, at int) {
	i += h.gone
	n := 0
	for ; i >= len(h.blocks[n].rows); n++ {
		i -= len(h.blocks[n].rows)
	}
	return h.blocks[n], i
}

// row returns the row i after the oldest one, with at least cols cells.
func (h *history) row(s *Screen, i, cols int) row {
	b, i := h.find(i)
	p := b.rows[i]
	r := row{cells: make([]cell, 0, cols), wrapped: p.line%2 != 0, mark: p.mark, line: p.line / 2}
	eachRun(b.data[b.start(i):b.rows[i].end], func(id styleID, text []byte) {
		for len(text) > 0 {
			c, size := utf8.DecodeRune(text)
			text = text[size:]
			width := RuneWidth(c)
			if n := len(r.cells); width == 0 && n > 0 {
				if r.cells[n-1]&spacerFlag != 0 {
					n--
				}
				r.cells[n-1] = s.combined(r.cells[n-1], c)
				continue
			}
			r.cells = append(r.cells, newCell(c, id))
			if width == 2 {
				r.cells[len(r.cells)-1] |= wideFlag
				r.cells = append(r.cells, blank(id)|spacerFlag)
			}
		}
	})
	if n := len(r.cells); n < cols {
		r.cells = append(r.cells, make([]cell, cols-n)...)
	}
	return r
}

// eachRun calls f for the runs of a packed row.
func eachRun(data []byte, f func(id styleID, text []byte)) {
	for len(data) > 0 {
		id, n := binary.Uvarint(data)
		data = data[n:]
		length, n := binary.Uvarint(data)
		data = data[n:]
		f(styleID(id), data[:length])
		data = data[length:]
	}
}
