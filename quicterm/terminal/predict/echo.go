package predict

import (
	"slices"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// A glimpse is what a row showed.
type glimpse struct {
	row   anchor
	cells []screen.Cell
}

// glance keeps the row of the cursor: when keys that were held are seen on it, it tells what stood there.
func (p *Predictor) glance(s *screen.Screen) {
	p.latest.cells = p.latest.cells[:0]
	if len(p.keys) == 0 || p.epoch.confirmed && !p.held() {
		return
	}
	_, y := s.Cursor()
	row := s.Row(y)
	p.latest.row = anchorOf(s, y)
	for x := range row.Len() {
		p.latest.cells = append(p.latest.cells, row.Cell(x))
	}
}

// noticed takes it as a hit that the newest output echoes the first n keys, left of the cursor. An output is one hit.
func (p *Predictor) noticed(s *screen.Screen, n int) {
	x, y := s.Cursor()
	if n == 0 || len(p.before.cells) < x || p.before.row != anchorOf(s, y) {
		return
	}
	for i, k := range p.keys[:n] {
		if k.r == ' ' || p.before.cells[x-n+i].Text == string(k.r) {
			continue
		}
		p.wrote, p.typing, p.suspect = true, true, false
		p.before.cells = p.before.cells[:0]
		return
	}
}

// shows reports whether keys have a character that is seen where it is echoed.
func shows(keys []key) bool {
	return slices.ContainsFunc(keys, func(k key) bool { return k.r != ' ' })
}

// gone remembers a key that nothing is predicted of.
func (p *Predictor) gone(k key) {
	p.last = p.remembered(k.r)
	p.typing = p.typing && (harmless(p.last) || p.last == '\r' || p.last == 'D'&0x1f) // ^D deletes, in an editor
}

// promptBehind returns the prompt in front of the held keys that are echoed already.
func (p *Predictor) promptBehind(h *history, row screen.Row, x int) string {
	_, at := p.echoedAt(h, row, x, p.keys[min(p.placed+1, len(p.keys)):])
	return h.promptAt(row, at)
}

// echoed returns how many of the held keys the screen shows already, at the cursor.
func (p *Predictor) echoed(s *screen.Screen) int {
	x, y := s.Cursor()
	n, at := p.echoedAt(p.evidence.of(p.hint.Context, p.alternate, p.modelOf(s)), s.Row(y), x, p.keys)
	p.findStart(s, y, at)
	return n
}

// echoedAt returns how many keys stand left of the column x, and where they begin: behind a known prompt,
// else as many as possible.
func (p *Predictor) echoedAt(h *history, row screen.Row, x int, keys []key) (n, at int) {
	at = x
	for i, k := range keys {
		if k.class != printable || k.boundary || i == x || p.srtt > 0 && !p.mayShow(k) {
			break
		}
		if !typedAt(row, x-i-1, keys[:i+1]) {
			continue
		}
		n, at = i+1, x-i-1
		if h != nil && h.knows(h.promptAt(row, at)) {
			break
		}
	}
	if n == 0 || h == nil || h.knows(h.promptAt(row, at)) {
		return n, at
	}
	if h.knows(h.promptAt(row, x)) || !shows(keys[:n]) && promptAt(row, x) != "" {
		return 0, x // they are the end of a prompt
	}
	return n, at
}

// typedAt reports whether a row shows keys from the column x on.
func typedAt(row screen.Row, x int, keys []key) bool {
	for i, k := range keys {
		if c := row.Cell(x + i); c.Text != string(k.r) && !(k.r == ' ' && blank(c)) {
			return false
		}
	}
	return true
}
