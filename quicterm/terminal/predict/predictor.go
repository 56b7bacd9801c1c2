// Package predict shows what a typed key will do before the server answers.
//
// A Predictor keeps the keys that the output does not show yet, and replays them on the row of the cursor:
//
//	keys    what is typed, as strokes                        keys.go
//	model   secret, cooked, editor or application            model.go
//	place   what a stroke does to the row                    strip.go, line.go, place.go
//	epoch   what may be drawn: confirmed by evidence         epoch.go, echo.go, evidence.go
//	judge   which keys the output shows, which were wrong    judge.go
//	show    the cells and the cursor to draw                 show.go
//
// The keys stand in one queue: those that are placed, all on one row; then, if there is one, a boundary, which is a
// key that may do anything; and the keys behind it, which are held until the boundary is passed.
//
// What is secret is neither kept nor drawn: where the kernel does not echo, or the row asks for a
// password, a key leaves nothing but the number of its frame. No typed character outlives its judgement,
// except a letter that a program on the alternate screen took for a command, as vim's i.
//
// A Predictor has no goroutine, no clock, and is not safe for concurrent use. Its memory is bounded.
package predict

import (
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Mode says when predictions are drawn.
type Mode uint8

const (
	Adaptive Mode = iota // where the round trip is long enough to be felt
	Always
	Never
)

// A Predictor predicts what typed keys show.
type Predictor struct {
	mode      Mode
	parser    parser
	keys      []key // placed ones, a boundary, held ones
	placed    int
	row       anchor // of the placed keys
	base      int    // the column of the cursor before the first of them
	start     start
	epoch     epoch
	suspect   bool   // the last epoch was wrong: the next one needs a hit
	muted     bool   // the kernel did not echo, so a line editor may not: the next epoch needs a hit
	last      rune   // the key before the epoch
	prompt    string // the whole prompt behind which typing was echoed last
	promptEnd int    // the column behind it
	typing    bool   // the program has echoed, and only keys that do not end this came since
	wrote     bool   // a character whose place could not be told was echoed
	ahead     bool   // what was typed ahead of a prompt is echoed behind it

	before glimpse // the row of the cursor before the newest output
	latest glimpse // and after it

	hint     wire.Hint
	seen     bool // the screen is known
	hinted   bool // there was a hint
	fresh    bool // the hint covers all output
	frame    uint64
	evidence evidence

	srtt      time.Duration
	offline   bool
	drawing   bool // what is placed is drawn
	alternate bool // the screen of the last call
	score     Score
	now       time.Time     // of the last call
	wishes    []wish        // for wanted
	cells     []screen.Cell // for line
}

// A start is where what may be edited begins in a row.
type start struct {
	row    anchor
	x      int
	set    bool
	behind string // the text left of it
	wall   int    // the column of what stands right of it behind a gap, as a right prompt; 0 if there is nothing
}

// A key is a stroke that is not judged yet.
type key struct {
	stroke
	at       time.Time
	frame    uint64 // 0 while it is not sent
	boundary bool   // it may do anything
	doubt    bool   // a boundary that only waits for a hint
	answered bool   // a boundary to which output has come
	obeyed   bool   // a boundary that was placed, and did something else

	// Of a placed key:
	placed  class // what it is there
	changes []change
	x       int  // the column of the cursor then
	sure    bool // its class is proven
	shown   bool
}

const (
	// maxKeys bounds the queue. It is more than a person types in a minute of outage.
	maxKeys = 256
	// maxTyped is the most bytes that are typed at once: more is a paste.
	maxTyped = 64
)

// New returns a Predictor without any experience.
func New(mode Mode) *Predictor { return &Predictor{mode: mode} }

// SetMode changes when predictions are drawn. Never forgets all.
func (p *Predictor) SetMode(mode Mode) {
	p.mode, p.drawing = mode, false
	p.forget()
}

// SetRTT sets the smoothed round trip time, 0 while it is not known.
func (p *Predictor) SetRTT(srtt time.Duration) { p.srtt = srtt }

// SetOffline says whether the server is out of reach.
func (p *Predictor) SetOffline(offline bool) { p.offline = offline }

// Typed takes input that went into frames up to the given one; 0 while it waits for its frame. s is the
// screen that shows all output so far.
func (p *Predictor) Typed(now time.Time, s *screen.Screen, b []byte, frame uint64) {
	if p.mode == Never {
		return
	}
	p.sent(frame)
	p.look(s)
	p.expire(now, s)
	if len(b) > maxTyped {
		p.parser = parser{pasting: p.parser.pasting}
		p.parser.parse(b, func(stroke) {})
		p.push(key{at: now, frame: frame, boundary: true})
		return
	}
	p.parser.parse(b, func(k stroke) {
		p.score.Keys++
		p.typed(now, s, key{stroke: k, at: now, frame: frame})
	})
	p.glance(s)
}

// sent gives the keys that waited for their frame the one of a later key.
func (p *Predictor) sent(frame uint64) {
	if frame == 0 {
		return
	}
	p.frame = frame
	for i := len(p.keys) - 1; i >= 0 && p.keys[i].frame == 0; i-- {
		p.keys[i].frame = frame
	}
}

func (p *Predictor) typed(now time.Time, s *screen.Screen, k key) {
	if p.seen && len(p.keys) == 0 {
		x, y := s.Cursor()
		p.findStart(s, y, x)
	}
	switch {
	case p.modelOf(s) == secret, k.frame == 0, s.CursorHidden() && len(p.keys) == 0:
		p.push(key{at: now, frame: k.frame, boundary: true, stroke: stroke{class: k.class.kind()}})
	case p.held():
		p.push(k)
	default:
		p.push(k)
		p.placeHeld(s)
	}
}

// kind leaves of a class whether it ends a line.
func (c class) kind() class {
	if c == enter {
		return enter
	}
	return other
}

// push adds a key to the queue. Boundaries in a row are one.
func (p *Predictor) push(k key) {
	if len(p.keys) == maxKeys { // only the newest of them can still be placed
		clear(p.keys[p.placed:])
		p.keys = append(p.keys[:p.placed], key{at: k.at, frame: k.frame, boundary: true})
		return
	}
	if last := len(p.keys) - 1; k.boundary && last >= p.placed && p.keys[last].boundary {
		p.keys[last] = k
		return
	}
	p.keys = append(p.keys, k)
}

// held reports whether a boundary is not passed.
func (p *Predictor) held() bool { return p.placed < len(p.keys) }

// Output says that s has obeyed more output.
func (p *Predictor) Output(now time.Time, s *screen.Screen) {
	if p.mode == Never {
		return
	}
	p.seen, p.fresh, p.now = true, false, now
	p.before, p.latest = p.latest, p.before
	p.look(s)
	if !s.Synchronized() {
		p.compare(s)
		if p.held() && p.mayShow(p.keys[p.placed]) {
			p.keys[p.placed].answered = true
		}
	}
	p.expire(now, s)
	p.glance(s)
}

// Hinted says what the server knows at this place of the output.
func (p *Predictor) Hinted(now time.Time, s *screen.Screen, h wire.Hint) {
	if p.mode == Never {
		return
	}
	p.hint, p.hinted, p.fresh = h, true, true
	if h.Terminal&wire.Canonical != 0 {
		p.muted = h.Terminal&wire.Echo == 0
	}
	p.look(s)
	p.judge(now, s)
	p.expire(now, s)
}

// Reset says that the screen was resized, replaced by a snapshot, or lacks output.
func (p *Predictor) Reset(now time.Time) {
	p.seen, p.fresh, p.now = true, false, now
	p.start.set, p.typing = false, false
	p.parser = parser{}
	p.forget()
	// Without a key of ours before, nothing but a hint is to be awaited.
	p.push(key{at: now, frame: p.frame, boundary: true, doubt: p.frame == 0})
}

// forget drops all keys.
func (p *Predictor) forget() {
	clear(p.keys)
	p.keys, p.placed = p.keys[:0], 0
}

// look begins anew when the program has switched the screen: what is typed next is placed when the
// program has done what was sent before.
func (p *Predictor) look(s *screen.Screen) {
	alternate := s.Alternate()
	if alternate == p.alternate {
		return
	}
	p.alternate, p.typing, p.start.set = alternate, false, false
	b := key{at: p.now, frame: p.frame, boundary: true}
	if !alternate {
		b.class, b.answered = enter, true // a prompt may follow at once
	}
	n := p.placed // of the keys that can have done it
	for i, k := range p.keys {
		if k.frame > 0 && p.srtt > 0 && !p.mayShow(k) {
			b.frame, n = k.frame-1, min(n, i)
			break
		}
	}
	p.hold(n)
	if len(p.keys) == 0 || !p.keys[0].boundary || p.keys[0].doubt {
		p.keys = slices.Insert(p.keys, 0, b)
	} else {
		p.keys[0].r = 0 // what it meant in the program that has left does not matter
	}
}

// hold drops the first n keys. The other placed ones are held: nothing is known of their place.
func (p *Predictor) hold(n int) {
	p.drop(n)
	for i, k := range p.keys[:p.placed] {
		p.keys[i] = key{stroke: k.stroke, at: k.at, frame: k.frame}
	}
	p.placed = 0
}
