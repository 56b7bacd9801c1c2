package predict

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// provenHere is how many characters of an epoch must be echoed before others are drawn in a program that
// does not always echo: two in a row are no command's work.
const provenHere = 2

// A Score counts keys, for a status line.
type Score struct {
	Keys  uint64 // typed
	Shown uint64 // drawn before they were answered
	Wrong uint64 // mistakes that were drawn
}

// Score returns what became of the keys.
func (p *Predictor) Score() Score { return p.score }

// InDoubt reports whether a hint should be asked for: keys lack their judgement for longer than it takes.
func (p *Predictor) InDoubt() bool {
	return p.hinted && len(p.keys) > 0 && p.now.Sub(p.keys[0].at) > p.srtt+askAfter
}

// Overlay returns what to draw over s now, and when that changes by itself; zero if it does not.
func (p *Predictor) Overlay(now time.Time, s *screen.Screen) (o Overlay, until time.Time) {
	if p.mode == Never || p.alternate != s.Alternate() {
		return o, until
	}
	p.expire(now, s)
	if len(p.keys) > 0 {
		until = p.next(now)
	}
	visible := p.visible(now)
	y, ok := p.row.find(s)
	if !ok || !visible {
		return o, until
	}
	if n := p.confident(); n > 0 {
		p.draw(now, stripAt(s, y), n, &o)
	}
	return o, until
}

// draw draws the first n keys.
func (p *Predictor) draw(now time.Time, t strip, n int, o *Overlay) {
	underline := p.underlined(now)
	for x, want := range p.wanted(n) {
		if !want.changed || want.Width <= 0 || x+want.Width > t.len || same(want.Cell, t.cell(x)) {
			continue
		}
		if underline && !blank(want.Cell) {
			want.Style.Underline = screen.SingleUnderline
		}
		o.Cells = append(o.Cells, Cell{x % t.cols, t.y + x/t.cols, want.Cell})
	}
	for i := range p.keys[:n] {
		if k := &p.keys[i]; !k.shown {
			k.shown = true
			p.score.Shown++
		}
	}
	if x, here := t.cursor(); !here || x != p.column(n) {
		o.Cursor = p.position(t, p.column(n))
	}
}

// position returns the place of a column. Behind the last one of a row the kernel leaves the cursor on it.
func (p *Predictor) position(t strip, x int) *Position {
	if x >= t.len || x == t.cols && p.epoch.model == cooked {
		x--
	}
	return &Position{x % t.cols, t.y + x/t.cols}
}

// confident returns how many of the placed keys may be drawn.
func (p *Predictor) confident() (n int) {
	if p.epoch.history == nil || !p.epoch.confirmed {
		return 0
	}
	for n < p.placed {
		k := &p.keys[n]
		if !k.sure && (p.epoch.hits < provenHere || k.placed != printable) {
			break
		}
		n++
	}
	return n
}

// visible reports whether predictions are drawn: from when a round trip is felt or a key is overdue, until the path is
// fast and no key waits any more. So what is drawn stays until its answer.
func (p *Predictor) visible(now time.Time) bool {
	switch {
	case p.mode == Always, p.srtt > slowAbove, p.offline, len(p.keys) > 0 && now.Sub(p.keys[0].at) >= stalled:
		p.drawing = true
	case len(p.keys) == 0 && p.srtt < slowBelow:
		p.drawing = false
	}
	return p.drawing
}

// underlined reports whether what is drawn is in doubt.
func (p *Predictor) underlined(now time.Time) bool {
	return p.offline || now.Sub(p.keys[0].at) >= doubtful ||
		p.epoch.model == application && p.srtt > underlineAbove && p.epoch.records[printable].hits < 2*provenHits
}

// next returns when what is drawn, or known, changes without output.
func (p *Predictor) next(now time.Time) (until time.Time) {
	at := p.keys[0].at
	for _, d := range []time.Duration{
		p.srtt + askAfter, stalled, p.srtt + quiet, p.srtt + busy, doubtful,
	} {
		if t := at.Add(d + time.Millisecond); t.After(now) && (until.IsZero() || t.Before(until)) {
			until = t
		}
	}
	return until
}
