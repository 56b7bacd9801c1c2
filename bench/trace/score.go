package trace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// A Result counts how well a policy did in one replay, or in several. README.md of package bench
// defines the figures.
type Result struct {
	Keys, Drawn           int           // keys with an effect, and those whose effect was drawn at once
	Typing, TypingDrawn   int           // of those, keys that write or erase text
	Wrong                 int           // cells drawn that the program has never shown
	WrongFor              time.Duration // cells times time
	Redrawn               int           // cells drawn right and then differently
	Restyled              int           // cells drawn right in another style than the program's
	Secrets, SecretsDrawn int           // characters of secrets typed, and drawn
	Unequal               int           // replays at whose end the screen was not the program's
	CPU                   time.Duration // of the policy
	Inputs                int           // all keys and pastes
	Misses                []Miss
}

// A Miss is a key whose effect was not drawn at once, or cells that were drawn wrong or twice.
type Miss struct {
	Kind  MissKind
	At    time.Duration
	Key   int
	Cells int           // that became wrong or were redrawn at this moment
	For   time.Duration // how long wrong cells were seen, all of them together
	Typed string        // the last keys
	Row   string        // what the client knew of the cursor's row; the cursor is ▏
	Drawn string        // the row as it was drawn
	Truth string        // the row after the key
}

// A MissKind is one, the worst first.
type MissKind string

const (
	WrongCells MissKind = "1 wrong"
	Redrawn    MissKind = "2 redrawn"
	NotTyped   MissKind = "3 typing key not drawn"
	NotDrawn   MissKind = "4 key not drawn"
)

// Add adds the figures of another replay.
func (r *Result) Add(o *Result) {
	r.Keys += o.Keys
	r.Drawn += o.Drawn
	r.Typing += o.Typing
	r.TypingDrawn += o.TypingDrawn
	r.Wrong += o.Wrong
	r.WrongFor += o.WrongFor
	r.Redrawn += o.Redrawn
	r.Restyled += o.Restyled
	r.Secrets += o.Secrets
	r.SecretsDrawn += o.SecretsDrawn
	r.Unequal += o.Unequal
	r.CPU += o.CPU
	r.Inputs += o.Inputs
	r.Misses = append(r.Misses, o.Misses...)
}

// Per1000 relates a count to a thousand keys.
func (r *Result) Per1000(n float64) float64 { return n * 1000 / float64(max(1, r.Inputs)) }

// A score looks at what is drawn in a replay.
type score struct {
	*replay
	truth    *truth
	lastKey  int // the index of the last key typed, or -1
	position int // how many outputs and resizes the client has
	cells    map[place]drawn
	result   Result
}

// drawn is a cell that a policy draws, and that differs from the screen.
type drawn struct {
	text  string
	style screen.Style
	wrong bool
	since time.Duration
	miss  int // index in Misses if it is wrong
}

func newScore(t *Study, r *replay) *score {
	s := &score{replay: r, truth: t.truth, lastKey: -1, cells: map[place]drawn{}}
	s.result.Inputs = len(t.truth.keys)
	for _, k := range t.truth.keys {
		if k.secret && isText(k.data) {
			s.result.Secrets++
		}
	}
	return s
}

// views returns the indices of the first and the last view between what the client has and what it
// will have after the keys so far.
func (s *score) views() (first, last int) {
	first = s.truth.from[s.position]
	if s.lastKey >= 0 {
		last = s.truth.keys[s.lastKey].last
	}
	return first, max(first, last)
}

// shown returns the text and the style of a cell of the client's screen, without the overlay.
func (s *score) shown(p place) (text string, style screen.Style, ok bool) {
	cols, rows := s.screen.Size()
	y := int(p.row - top(s.screen))
	if p.row < top(s.screen) || y >= rows || p.x >= cols {
		return "", screen.Style{}, false
	}
	c := s.screen.Row(y).Cell(p.x)
	return glyph(c), c.Style, true
}

// drawn looks at the overlay after it may have changed.
func (s *score) drawn() {
	first, last := s.views()
	now := make(map[place]drawn, len(s.overlay.Cells))
	for _, c := range s.overlay.Cells {
		p := place{top(s.screen) + uint64(c.Y), c.X}
		text := glyph(c.Cell)
		if shown, _, ok := s.shown(p); ok && shown == text {
			continue
		}
		d := drawn{text: text, style: c.Style, since: s.now}
		d.wrong = !s.ever(p, text, first, last)
		now[p] = d
	}
	for p, was := range s.cells {
		d, still := now[p]
		switch {
		case still && d.text == was.text && d.wrong && was.wrong:
			d.since, d.miss = was.since, was.miss
			now[p] = d
			continue
		case was.wrong:
			s.ended(was)
		case !still || d.text != was.text:
			s.changed(p, was, d, still)
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(now), comparePlaces) {
		d := now[p]
		if was, ok := s.cells[p]; d.wrong && !(ok && was.wrong && was.text == d.text) {
			s.began(&d)
			now[p] = d
		}
	}
	s.cells = now
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.x, b.x))
}

// ever reports whether one of some views has a text in a cell.
func (s *score) ever(p place, text string, first, last int) bool {
	for _, v := range s.truth.views[first : last+1] {
		if t, ok := v.at(p); ok && t == text {
			return true
		}
	}
	return false
}

func (s *score) began(d *drawn) {
	s.result.Wrong++
	d.miss = s.miss(WrongCells)
	if s.lastKey >= 0 && d.text != "" {
		if s.concealed(d.text) {
			s.result.SecretsDrawn++
		}
	}
}

// concealed reports whether a text is of the secret that is typed, or that was typed last and that
// the server has not answered.
func (s *score) concealed(text string) bool {
	first, _ := s.views()
	for i := s.lastKey; i >= 0; i-- {
		k := &s.truth.keys[i]
		if k.after < first {
			return false
		}
		if k.secret {
			for ; i >= 0 && s.truth.keys[i].secret; i-- {
				if strings.Contains(s.truth.keys[i].data, text) {
					return true
				}
			}
			return false
		}
	}
	return false
}

func (s *score) ended(d drawn) {
	s.result.WrongFor += s.now - d.since
	s.result.Misses[d.miss].For += s.now - d.since
}

// changed looks at a cell that was drawn right and is drawn no longer, or otherwise.
func (s *score) changed(p place, was, is drawn, drawn bool) {
	text, style, ok := s.shown(p)
	if drawn {
		text, style = is.text, is.style
	}
	if !ok {
		return
	}
	if text != was.text {
		if s.lastKey >= 0 {
			after := s.truth.views[max(s.truth.from[s.position], s.truth.keys[s.lastKey].after)]
			if t, ok := after.at(p); ok && t == was.text {
				s.result.Redrawn++
				s.miss(Redrawn)
			}
		}
		return
	}
	style.Underline, was.style.Underline = 0, 0
	if style != was.style {
		s.result.Restyled++
	}
}

// check looks whether the effect of a key is drawn.
func (s *score) check(i int) {
	k := &s.truth.keys[i]
	if !k.effect || k.secret {
		return
	}
	s.result.Keys++
	if k.typing {
		s.result.Typing++
	}
	if !s.drawnNow(k) {
		if k.typing {
			s.miss(NotTyped)
		} else {
			s.miss(NotDrawn)
		}
		return
	}
	s.result.Drawn++
	if k.typing {
		s.result.TypingDrawn++
	}
}

func (s *score) drawnNow(k *key) bool {
	at := cursor(s.screen)
	if c := s.overlay.Cursor; c != nil {
		at = place{top(s.screen) + uint64(c.Y), c.X}
	}
	cols, _ := s.screen.Size() // a cursor behind the last column is seen in it
	if want := k.cursor; at.row != want.row || min(at.x, cols-1) != min(want.x, cols-1) {
		return false
	}
	after := s.truth.views[k.after]
	for _, p := range k.changed {
		text, _, _ := s.shown(p)
		if d, ok := s.cells[p]; ok {
			text = d.text
		}
		if want, ok := after.at(p); !ok || want != text {
			return false
		}
	}
	return true
}

// finish ends the replay.
func (s *score) finish() *Result {
	for _, d := range s.cells {
		if d.wrong {
			s.ended(d)
		}
	}
	c := s.overlay.Cursor
	moved := c != nil && place{top(s.screen) + uint64(c.Y), c.X} != cursor(s.screen)
	if moved || len(s.cells) > 0 {
		s.result.Unequal++
	}
	return &s.result
}

// miss keeps what there is to see at a miss, and returns its index.
func (s *score) miss(kind MissKind) int {
	if n := len(s.result.Misses) - 1; n >= 0 {
		if last := &s.result.Misses[n]; last.Kind == kind && last.At == s.now {
			last.Cells++
			return n
		}
	}
	m := Miss{Kind: kind, At: s.now, Key: s.lastKey + 1, Cells: 1}
	c := cursor(s.screen)
	_, y := s.screen.Cursor()
	shown := make([]string, 0, 256)
	for x := range s.screen.Row(y).Len() {
		shown = append(shown, glyph(s.screen.Row(y).Cell(x)))
	}
	m.Row = rowText(shown, c.x)
	at := c.x
	if o := s.overlay.Cursor; o != nil && o.Y == y {
		at = o.X
	}
	for _, o := range s.overlay.Cells {
		if o.Y == y && o.X < len(shown) {
			shown[o.X] = glyph(o.Cell)
		}
	}
	m.Drawn = rowText(shown, at)
	if s.lastKey >= 0 {
		for i := max(0, s.lastKey-9); i <= s.lastKey; i++ {
			if s.truth.keys[i].secret {
				m.Typed += "•"
			} else {
				m.Typed += strings.Trim(fmt.Sprintf("%.12q", s.truth.keys[i].data), `"`) + " "
			}
		}
		k := &s.truth.keys[s.lastKey]
		v := s.truth.views[k.after]
		x := -1
		if k.cursor.row == c.row {
			x = k.cursor.x
		}
		m.Truth = rowText(v.line(c.row), x)
	}
	s.result.Misses = append(s.result.Misses, m)
	return len(s.result.Misses) - 1
}

// rowText shows a row with the cursor in it.
func rowText(cells []string, cursor int) string {
	var b strings.Builder
	for x, text := range cells {
		if x == cursor {
			b.WriteString("▏")
		}
		b.WriteString(cmp.Or(text, " "))
	}
	return strings.TrimRight(b.String(), " ")
}
