package predict

import (
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// match finds the earliest state, after at least so many of the placed keys, that the screen shows, and takes
// the keys up to it as right.
func (p *Predictor) match(s *screen.Screen, least int) bool {
	for n := least; n <= p.placed; n++ {
		if p.shows(s, n) {
			p.right(s, n)
			return true
		}
	}
	return p.placed == 0
}

// shows reports whether the screen shows the state after the first n keys.
func (p *Predictor) shows(s *screen.Screen, n int) bool {
	y, ok := p.row.find(s)
	if !ok {
		return false
	}
	if n == 0 && !p.epoch.confirmed && !p.steady(s) {
		return false // a command has changed what stands left of the cursor
	}
	t := stripAt(s, y)
	x, ok := t.cursor()
	return ok && x == p.column(n) && p.matches(t, n)
}

// column returns the column of the cursor after the first n keys.
func (p *Predictor) column(n int) int {
	if n == 0 {
		return p.base
	}
	return p.keys[n-1].x
}

// matches reports whether the screen shows what the first n keys change.
func (p *Predictor) matches(t strip, n int) bool {
	for x, want := range p.wanted(n) {
		if want.changed && (x >= t.len || !same(want.Cell, t.cell(x))) {
			return false
		}
	}
	return true
}

// A wish is what a column will show, if keys change it.
type wish struct {
	screen.Cell
	changed bool
}

// wanted returns what the columns show after the first n keys.
func (p *Predictor) wanted(n int) []wish {
	clear(p.wishes)
	for _, k := range p.keys[:n] {
		for _, c := range k.changes {
			for c.x >= len(p.wishes) {
				p.wishes = append(p.wishes, wish{})
			}
			p.wishes[c.x] = wish{c.want, true}
		}
	}
	return p.wishes
}

// right takes the first n keys as right.
func (p *Predictor) right(s *screen.Screen, n int) {
	if n == 0 {
		return
	}
	steady := p.steady(s)
	for i := range n {
		k := &p.keys[i]
		p.epoch.records[k.placed].add(true)
		if !k.credits() || !steady {
			continue
		}
		if p.epoch.hits == 0 {
			p.epoch.began(p.epoch.prompt, true)
			if p.epoch.prompt != "" && p.epoch.model != cooked && p.start.x > 0 {
				p.prompt, p.promptEnd = p.start.behind, p.start.x
			}
		}
		p.epoch.hits++
		p.epoch.confirmed, p.typing, p.suspect, p.muted = true, true, false, false
	}
	p.base = p.column(n)
	p.epoch.x = p.base
	p.drop(n)
}

// steady reports whether what is left of the typing is as it was. Where it changes, as in a search of the
// history, a cell may be as expected by chance.
func (p *Predictor) steady(s *screen.Screen) bool {
	y, ok := p.row.find(s)
	return ok && (p.start.row != p.row || textBefore(s.Row(y), p.start.x) == p.start.behind)
}

// credits reports whether a key shows that the program echoes: a character stands where there was another one.
func (k *key) credits() bool {
	for _, c := range k.changes {
		if !blank(c.want) && !same(c.want, c.before) {
			return true
		}
	}
	return false
}

// writes reports whether a key shows a character that was typed.
func (k *key) writes() bool { return k.class == printable || k.class == wide }

// judge compares the keys that the program has had for a while with the screen.
func (p *Predictor) judge(now time.Time, s *screen.Screen) {
	n := p.answered(now)
	late := p.late(now)
	switch {
	case p.placed == 0:
	case n > 0 && !late && p.shows(s, 0) && !p.shows(s, n): // slow, or further keys have undone it
	case p.match(s, n), n == 0, p.goneOn(s, n, p.placed):
	case !late && (p.match(s, 0) || p.epoch.confirmed && !p.contradicted(s, maxColumns) && p.here(s)):
		// It is slow, without effect, or in the middle of its output.
	default:
		p.wrong()
	}
}

// here reports whether the cursor is in the row of the placed keys, or hidden, as programs do while they draw.
func (p *Predictor) here(s *screen.Screen) bool {
	_, y := s.Cursor()
	return s.CursorHidden() || anchorOf(s, y) == p.row
}

// maxColumns is more than a row has.
const maxColumns = 1 << 30

// contradicted reports whether the row shows, left of the column end, what is neither from before the placed
// keys nor from one of them.
func (p *Predictor) contradicted(s *screen.Screen, end int) bool {
	y, ok := p.row.find(s)
	if !ok {
		return true
	}
	t := stripAt(s, y)
	may := make([]int8, t.len) // 1 for a column that shows what it may, -1 for one that does not
	for _, k := range p.keys[:p.placed] {
		for _, c := range k.changes {
			switch {
			case c.x >= end:
			case c.x >= len(may):
				return true
			case same(c.want, t.cell(c.x)) || same(c.before, t.cell(c.x)):
				may[c.x] = 1
			case may[c.x] == 0:
				may[c.x] = -1
			}
		}
	}
	return slices.Contains(may, -1)
}

// answered returns how many of the placed keys the program should have answered.
func (p *Predictor) answered(now time.Time) (n int) {
	for n < p.placed {
		k := p.keys[n]
		if p.hinted && (k.frame == 0 || k.frame > p.hint.In) || !p.hinted && !p.late(now) {
			break
		}
		n++
	}
	return n
}

// late reports whether the first key should long have been answered. A program that has echoed may be slow.
func (p *Predictor) late(now time.Time) bool {
	patience := quiet
	if p.epoch.hits > 0 {
		patience = busy
	}
	return len(p.keys) > 0 && now.Sub(p.keys[0].at) > p.srtt+patience
}

// wrong drops the first placed key, which did something else, and holds the others until it is known what.
func (p *Predictor) wrong() {
	if p.placed == 0 {
		return
	}
	k := p.keys[0]
	if k.shown {
		p.score.Wrong++
	}
	if p.epoch.hits > 0 {
		p.epoch.records[k.placed].add(false)
	} else if k.writes() {
		if harmless(p.last) || endsLine(p.last) {
			p.epoch.began(p.epoch.prompt, false)
		}
	}
	p.typing = false
	p.last = p.remembered(k.r)
	p.suspect = true
	p.epoch = epoch{}
	p.placed = 0
	p.keys[0] = key{
		stroke: stroke{r: p.last}, at: k.at, frame: k.frame,
		boundary: true, obeyed: true, answered: p.mayShow(k),
	}
}

// remembered returns what may be kept of a key: of characters, only commands of programs that fill the screen.
func (p *Predictor) remembered(r rune) rune {
	if command(r) && !p.alternate {
		return anyCommand
	}
	return r
}

// leave judges the placed keys when the program goes on to what is behind them: only their row tells.
func (p *Predictor) leave(s *screen.Screen) {
	if p.placed == 0 {
		return
	}
	if p.matchesRow(s) {
		p.right(s, p.placed)
		return
	}
	p.drop(p.placed)
}

// compare takes what new output says of the placed keys.
func (p *Predictor) compare(s *screen.Screen) {
	if p.match(s, 0) {
		return
	}
	x, y := s.Cursor()
	here := anchorOf(s, y) == p.row
	switch {
	case !p.held() && x <= p.start.x && y > 0 && anchorOf(s, y-1) == p.row && p.goneOn(s, 1, p.due()):
		// The cursor is at the start of the next row.
	case p.held() && (p.matchesRow(s) || !here):
		p.leave(s)
	case p.held(), s.CursorHidden(): // a program that hides it is in the middle of its output
	case here && p.contradicted(s, x), !p.epoch.confirmed && p.mayShow(p.keys[0]):
		p.wrong()
	}
}

// due returns how many of the placed keys the output may be an answer to.
func (p *Predictor) due() (n int) {
	for n < p.placed && p.mayShow(p.keys[n]) {
		n++
	}
	return n
}

// goneOn takes some of the placed keys as right, at least so many and at most so many, if their row shows
// them and the program has then put the cursor into another row, as at the end of its line. The other
// keys are held until it is known where they go.
func (p *Predictor) goneOn(s *screen.Screen, least, most int) bool {
	_, at := s.Cursor()
	y, ok := p.row.find(s)
	if !ok || y == at {
		return false
	}
	for n := most; n >= max(least, 1); n-- {
		if !p.keys[n-1].credits() || !p.matches(stripAt(s, y), n) {
			continue
		}
		p.right(s, n)
		if p.placed > 0 {
			p.placed = 0
			p.keys = slices.Insert(p.keys, 0, key{at: p.now, boundary: true, doubt: true})
		}
		return true
	}
	return false
}

// mayShow reports whether a key was typed long enough ago for output of now to be an answer to it.
func (p *Predictor) mayShow(k key) bool { return p.srtt > 0 && p.now.Sub(k.at) >= p.srtt*7/8 }

// matchesRow reports whether the row shows the work of all placed keys, wherever the cursor is.
func (p *Predictor) matchesRow(s *screen.Screen) bool {
	y, ok := p.row.find(s)
	return ok && p.matches(stripAt(s, y), p.placed)
}
