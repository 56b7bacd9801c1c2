package predict

import (
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An epoch is a run of keys without a boundary. Its predictions are drawn once it is confirmed: by a
// prediction that was right, or at once where the history says that it will be.
type epoch struct {
	*history
	confirmed bool
	hits      int    // characters of it that were echoed
	prompt    string // what its first key stands behind
	x         int    // the column where its next key is expected
	row       anchor
}

// placeHeld places the held keys up to the next boundary, of which the first may be one itself.
func (p *Predictor) placeHeld(s *screen.Screen) {
	if p.held() && p.placed == 0 && !p.begin(s) {
		k := &p.keys[0]
		p.keys = append([]key{{at: k.at, boundary: true, doubt: true}}, p.keys...)
		return
	}
	for p.held() {
		k := &p.keys[p.placed]
		if k.boundary || !p.place(s, k) {
			k.boundary = true
			return
		}
		p.placed++
	}
}

// begin prepares for a first key at the cursor. It fails where it is not known who reads what is typed.
func (p *Predictor) begin(s *screen.Screen) bool {
	x, y := s.Cursor()
	row := anchorOf(s, y)
	goesOn := p.epoch.confirmed && p.epoch.row == row && p.epoch.x == x
	if !p.seen || s.CursorHidden() || p.hinted && !p.fresh && !goesOn {
		return false
	}
	before := p.row
	p.row, p.base = row, x
	p.findStart(s, y, x)
	m := p.modelOf(s)
	if m == secret {
		return false
	}
	h := p.evidence.of(p.hint.Context, p.alternate, m)
	if m == editor && h.epochs.hits == 0 && x == 0 {
		p.start.set = false
		return false // the prompt is not there yet
	}
	if h != p.epoch.history || p.epoch.row != row || p.epoch.x != x {
		p.epoch = epoch{history: h, prompt: h.promptAt(s.Row(y), p.start.x)}
		p.epoch.confirmed = p.trusted(s, x, y) || p.goesOn(s, before) || p.wrote ||
			p.ahead && m != cooked && (p.epoch.prompt != "" || searches(s))
	}
	p.epoch.row, p.epoch.x = row, x
	return true
}

// findStart keeps where the typing began in the row of the cursor.
func (p *Predictor) findStart(s *screen.Screen, y, x int) {
	row, at := anchorOf(s, y), x
	before := func(x int) string { return textBefore(s.Row(y), x) }
	switch {
	case p.start.set && row == p.start.row && p.start.x <= x && before(p.start.x) == p.start.behind:
	case p.start.set && row.line == p.start.row.line && row.part > p.start.row.part:
		p.start = start{row: row, set: true}
	default:
		if end := p.promptEnd; p.prompt != "" && end <= x && before(end) == p.prompt && !p.alternate {
			at = end
		}
		p.start = start{row: row, x: at, set: true, behind: before(at), wall: gapEnd(s.Row(y), x)}
	}
}

// trusted reports whether the history confirms a new epoch at once.
func (p *Predictor) trusted(s *screen.Screen, x, y int) bool {
	h := p.epoch.history
	row := s.Row(y)
	typed := strings.Trim(textBefore(row, x)[len(textBefore(row, p.start.x)):], " ")
	behind := p.epoch.prompt != "" && typed == "" // a prompt
	switch {
	case !p.hinted || p.muted:
		return false
	case p.alternate && command(p.last):
		return (p.last == '/' || p.last == '?') && searches(s) ||
			h.knows(p.epoch.prompt) && p.editing(s, h)
	case !harmless(p.last) && !endsLine(p.last):
		return false
	case behind && !p.alternate && h.model != cooked && h.knows(p.epoch.prompt):
		return true
	case p.suspect || command(p.last):
		return false
	case h.model == cooked && behind && p.hint.Terminal&wire.Shell != 0 && promptAt(row, x) != "" && signsOnly(row, x):
		return true // a shell that leaves its lines to the kernel asks nothing there
	case h.model == cooked: // A program that has just begun may be about to turn the echo off.
		asked := p.epoch.prompt != "" && !h.knows(p.epoch.prompt) // and it may do so behind its question
		return h.epochs.hits >= 1 && h.epochs.misses <= provenMisses && !asked
	case h.knows(p.epoch.prompt), behind && p.editing(s, h):
		return true
	case behind && !p.alternate && h.model == application && endsLine(p.last) && signsOnly(s.Row(y), x):
		return h.epochs.hits >= provenHits && h.epochs.proven() // as a second prompt, for lines that continue
	case h.model == editor:
		return false
	}
	if !p.alternate || h.epochs.hits <= 2*provenHits || !h.epochs.proven() || labelsSecret(s) {
		return false
	}
	// Behind text on its row a program may ask for a secret in words that nobody knows.
	return harmless(p.last) || emptyRow(s, x, y)
}

// goesOn reports whether a full-screen program that has echoed what was typed will continue to: the keys
// since then moved the cursor, or began the line below the one before.
func (p *Predictor) goesOn(s *screen.Screen, before anchor) bool {
	if !p.hinted || !p.alternate || !p.typing || p.suspect || labelsSecret(s) {
		return false
	}
	x, y := s.Cursor()
	if harmless(p.last) || p.last == 'D'&0x1f {
		return inText(s.Row(y), x) // not in an empty field of a form
	}
	if !s.BracketedPaste() {
		return false // not an editor: a command may read what it likes
	}
	above, ok := before.find(s)
	return p.last == '\r' && ok && y == above+1 && emptyRow(s, x, y)
}

// inText reports whether text touches the cursor.
func inText(row screen.Row, x int) bool {
	return x > 0 && !blank(row.Cell(x-1)) || x < row.Len() && !blank(row.Cell(x))
}

// searches reports whether the cursor is in a line for a search at the bottom of the screen, as in vi, less and man.
func searches(s *screen.Screen) bool {
	x, y := s.Cursor()
	_, rows := s.Size()
	sign := textBefore(s.Row(y), x)
	return s.Alternate() && y == rows-1 && (sign == "/" || sign == "?")
}

// anyCommand stands for a character that is not remembered.
const anyCommand = ' '

// editing reports whether a line editor says that it reads: it has asked for marked pastes, or marked its prompt.
func (p *Predictor) editing(s *screen.Screen, h *history) bool {
	in, _ := s.InputZone()
	return (in || s.BracketedPaste() && (!p.alternate || signAt(s))) && h.epochs.misses <= h.epochs.hits
}

// signAt reports whether the cursor stands behind the sign of a prompt, with nothing right of it: no
// program that takes letters for commands puts it there.
func signAt(s *screen.Screen) bool {
	x, y := s.Cursor()
	row := s.Row(y)
	if x < 2 || !blank(row.Cell(x-1)) || !strings.Contains("$#%>❯➜λ»", row.Cell(x-2).Text) {
		return false
	}
	return restBlank(row, x)
}

// signsOnly reports whether a prompt has no word: nothing is asked there.
func signsOnly(row screen.Row, x int) bool {
	return !strings.ContainsFunc(textBefore(row, x), alphanumeric)
}

// emptyRow reports whether nothing but the sides of a frame is in the row y, which is not the last one.
func emptyRow(s *screen.Screen, x, y int) bool {
	_, rows := s.Size()
	row := s.Row(y)
	return y < rows-1 && restBlank(row, x) && strings.TrimLeft(textBefore(row, x), " │|") == ""
}

// restBlank reports whether a row is blank from the column x on.
func restBlank(row screen.Row, x int) bool {
	for ; x < row.Len(); x++ {
		if !blank(row.Cell(x)) {
			return false
		}
	}
	return true
}

// command reports whether a key is a character, which the program has not echoed but obeyed.
func command(r rune) bool { return r >= ' ' && r != 0x7f && r < sequenceKey }

// endsLine reports whether a key ends what was edited: 0 is what is not a key.
func endsLine(r rune) bool {
	switch r {
	case 0, '\r', '\n', 'C' & 0x1f, 'D' & 0x1f, 'L' & 0x1f:
		return true
	}
	return false
}

// harmless reports whether a key completes a word, or moves through lines and the history: editing goes on behind it.
func harmless(r rune) bool {
	switch r {
	case '\t', 'P' & 0x1f, 'N' & 0x1f, 'E' & 0x1f, 'K' & 0x1f, 'U' & 0x1f, 'W' & 0x1f, 0x7f,
		sequenceKey + 'A', sequenceKey + 'B', sequenceKey + 'C', sequenceKey + 'D',
		sequenceKey + 'H', sequenceKey + 'F', sequenceKey + '~', metaKey + 'b', metaKey + 'f', metaKey + 'd':
		return true
	}
	return false
}

// place gives a key what it changes. It fails if the key is a boundary.
func (p *Predictor) place(s *screen.Screen, k *key) bool {
	y, ok := p.row.find(s)
	if !ok {
		return false
	}
	e := edit{line: p.line(s, y)}
	defer clear(p.cells) // what is typed is not kept
	if e.x >= len(e.cells) {
		return false
	}
	// Editors differ in what they do to the text behind the cursor.
	k.sure = p.epoch.model == editor && k.class == killStart && e.x == e.textEnd()
	var c class
	if p.epoch.model == cooked {
		c, ok = e.pressCooked(k.stroke, p.hint.Terminal)
	} else {
		c, ok = e.press(k.stroke)
	}
	if !ok {
		return false
	}
	k.placed, k.changes, k.x = c, e.changes, e.x
	k.sure = k.sure || p.epoch.records[c].proven()
	return true
}

// line returns the row y with the work of the placed keys, until the next call.
func (p *Predictor) line(s *screen.Screen, y int) *line {
	t := stripAt(s, y)
	if x := p.column(p.placed); x < t.cols && !(t.full(x) && t.wraps()) {
		t.len = t.cols
	}
	p.cells = t.appendTo(p.cells[:0])
	l := &line{cells: p.cells, cols: t.cols, x: p.base, start: p.start.x, pen: s.Pen()}
	if p.alternate && p.typing && p.epoch.prompt == "" {
		l.start = min(l.start, l.indent())
	}
	if w := p.start.wall; w > 0 && w < len(l.cells) && !blank(l.cells[w]) {
		l.right = w - 1
	}
	for _, k := range p.keys[:p.placed] {
		for _, c := range k.changes {
			if c.x < len(l.cells) {
				l.cells[c.x] = c.want
			}
		}
		l.x = k.x
	}
	return l
}

// expire gives up what is late, and passes the boundaries that are due.
func (p *Predictor) expire(now time.Time, s *screen.Screen) {
	p.now = now
	if p.late(now) {
		p.judge(now, s)
	}
	for range len(p.keys) + 1 { // each round removes a boundary, and adds at most one
		if !p.held() || !p.keys[p.placed].boundary || !p.passed(now, s) {
			return
		}
		p.leave(s)
		p.ahead, p.wrote = false, false
		if b := p.keys[0]; !b.doubt {
			p.epoch = epoch{}
			p.gone(b)
			p.start.set = p.start.set && b.class != enter
		}
		p.drop(1)
		p.skip(s)
		if len(p.keys) == 0 || p.keys[0].boundary {
			continue
		}
		if p.modelOf(s) == secret {
			last := p.keys[len(p.keys)-1]
			p.forget()
			p.push(key{at: last.at, frame: last.frame, boundary: true})
			return
		}
		n := p.echoed(s)
		p.ahead = p.ahead || shows(p.keys[:n])
		p.noticed(s, n)
		p.drop(n)
		if n := p.unclear(); n > 0 {
			p.drop(n - 1)
			p.keys[0].boundary = true
			continue
		}
		p.placeHeld(s)
	}
}

// skip drops the held keys that the program has had for a while. Where it has not echoed them, it may be slow.
func (p *Predictor) skip(s *screen.Screen) {
	n := 0
	for p.hinted && n < len(p.keys) && p.keys[n].frame != 0 && p.keys[n].frame <= p.hint.In {
		n++
	}
	x, y := s.Cursor()
	switch echoed, _ := p.echoedAt(nil, s.Row(y), x, p.keys); {
	case n > echoed && !p.keys[n-1].boundary:
		p.suspect = true
	case n <= echoed:
		p.ahead = shows(p.keys[:n])
		p.noticed(s, echoed)
	}
	for _, k := range p.keys[:n] {
		p.gone(k)
	}
	p.drop(n)
}

// unclear returns how many of the held keys the screen may show or not: they move the cursor, or erase.
func (p *Predictor) unclear() (n int) {
	for i, k := range p.keys {
		if k.boundary || !p.mayShow(k) {
			break
		}
		if k.class != printable && k.class != wide {
			n = i + 1
		}
	}
	return n
}

// passed reports whether the program has done what the first boundary asks, and all output of it is known.
func (p *Predictor) passed(now time.Time, s *screen.Screen) bool {
	b := p.keys[p.placed]
	switch {
	case !p.seen:
		return false
	case !p.hinted:
		return now.Sub(b.at) > p.srtt+quiet
	case !p.fresh || b.doubt || b.frame == 0:
		return p.fresh && b.doubt
	case p.hint.In >= b.frame && (b.class != enter || b.answered || p.alternate || now.Sub(b.at) > p.srtt+busy):
		return true // what reads lines ends the row, once it has read the key
	}
	if b.answered && p.quick(b) && (len(p.keys) == p.placed+1 || !p.mayShow(p.keys[p.placed+1])) {
		return true // the output is of this key alone
	}
	// A new prompt on another row is the answer to Enter.
	x, y := s.Cursor()
	if b.class != enter || p.start.set && anchorOf(s, y) == p.start.row {
		return false
	}
	h := p.evidence.of(p.hint.Context, p.alternate, p.modelOf(s))
	prompt := p.promptBehind(h, s.Row(y), x)
	return h.model != secret && (h.knows(prompt) || prompt != "" && h.model != cooked && p.editing(s, h))
}

// quick reports whether the first output after a key is all that it does.
func (p *Predictor) quick(b key) bool {
	return b.obeyed || b.class == enter && p.alternate || b.r != '\t' && harmless(b.r)
}

// drop removes the first n keys.
func (p *Predictor) drop(n int) {
	rest := append(p.keys[:0], p.keys[n:]...)
	clear(p.keys[len(rest):])
	p.keys, p.placed = rest, max(p.placed-n, 0)
}
