package terminal

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// A terminal shows what stands between these at once, if it knows synchronized output.
	beginUpdate = "\x1b[?2026h"
	endUpdate   = "\x1b[?2026l"

	// maxKept bounds the memory that is kept for further writes.
	maxKept = 16 << 10

	// maxUntold bounds the keys that the predictor does not know yet, because the terminal takes no
	// output. It is more than a user types before a frame is drawn.
	maxUntold = 256
)

// A predictor says what typed keys will show: see [predict.Predictor].
type predictor interface {
	SetMode(predict.Mode)
	SetRTT(time.Duration)
	SetOffline(bool)
	Typed(now time.Time, s *screen.Screen, b []byte, frame uint64)
	Output(now time.Time, s *screen.Screen)
	Hinted(now time.Time, s *screen.Screen, h wire.Hint)
	Reset(now time.Time)
	Overlay(now time.Time, s *screen.Screen) (o predict.Overlay, until time.Time)
	InDoubt() bool
	Score() predict.Score
}

// A painter draws predictions over what a display shows. It erases them before anything else is written,
// so that the terminal's scrollback gets only what programs have written. Its methods are called with the
// display locked, except for those that lock mu alone.
type painter struct {
	predictor predictor
	out       io.Writer
	seen      *follower // of all that is written to out, except what is drawn
	rtt       func() time.Duration
	wake      func()      // paints
	timer     *time.Timer // does so later
	mode      predict.Mode
	usual     predict.Mode // as the settings have it

	painted  bool // cells are drawn, or the cursor is in another place
	cells    []screen.Placed
	cursor   screen.Place
	hold     bool // nothing is to be drawn: the terminal has not the size that the session has
	buf      []byte
	frame    uint64    // the newest one with keys
	received uint64    // the newest one that the program has had for a while
	keyAt    time.Time // when the newest key was typed

	// While no key waits for its effect, the predictor learns the newest output and hint later.
	unread bool // there was output
	hint   wire.Hint
	hinted bool // there was a hint
	behind bool // the output came after the hint

	mu     sync.Mutex // is locked last, and guards what follows
	off    bool
	keys   []keys    // that the predictor does not know yet
	forgot bool      // keys before these
	due    time.Time // when it paints next, or zero
}

// keys are bytes that were typed, and the frame that they are in, or 0 if they wait for one.
type keys struct {
	typed []byte
	frame uint64
	at    time.Time
	rtt   time.Duration
}

// typedLocked takes typed bytes, of which n are in frames up to one, and has the predictions painted.
func (p *painter) typedLocked(b []byte, n int, frame uint64) {
	if p.off {
		return
	}
	now, rtt := time.Now(), p.rtt()
	if len(p.keys) > maxUntold {
		p.forgetLocked()
		p.forgot = true
	}
	if n > 0 {
		p.keys = append(p.keys, keys{bytes.Clone(b[:n]), frame, now, rtt})
	}
	if n < len(b) {
		p.keys = append(p.keys, keys{bytes.Clone(b[n:]), 0, now, rtt})
	}
	p.wakeLocked(now)
}

// forgetLocked forgets the keys that the predictor does not know yet.
func (p *painter) forgetLocked() {
	for _, k := range p.keys {
		clear(k.typed)
	}
	p.keys = nil
}

// paintSoon has the predictions painted by another goroutine.
func (p *painter) paintSoon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.off {
		p.wakeLocked(time.Now())
	}
}

// beginPaint says that the predictions are painted now.
func (p *painter) beginPaint() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due = time.Time{}
}

// wakeLocked has the predictions painted now, unless that is due already. A goroutine costs less than a
// timer: it runs as soon as the one that reads keys lets it.
func (p *painter) wakeLocked(now time.Time) {
	if p.due.IsZero() || now.Before(p.due) {
		p.due = now
		p.timer.Stop()
		go p.wake()
	}
}

// paintAt has the predictions painted at a time, or not again if it is zero, unless keys wait.
func (p *painter) paintAt(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.keys) > 0 || p.off:
	case at.IsZero():
		p.timer.Stop()
		p.due = at
	default:
		p.due = at
		p.timer.Reset(time.Until(at))
	}
}

// busy reports whether there are keys whose effect may still come.
func (p *painter) busy(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.off && (p.painted || len(p.keys) > 0 || p.frame > p.received && now.Sub(p.keyAt) < openTime)
}

// show writes output. It writes once.
func (p *painter) show(b []byte) error {
	now := time.Now()
	if !p.busy(now) {
		p.unread, p.behind = true, true
		_, err := p.out.Write(b)
		p.seen.Write(b)
		return err
	}
	s := p.seen.now()
	p.learn(now, s)
	var alone []byte
	erase := p.erase(s)
	if len(erase) > 0 {
		alone = p.update(nil, s, erase)
	}
	p.seen.Write(b)
	s = p.seen.now()
	p.predictor.Output(now, s)
	paint, until := p.paint(now, s)
	out := p.buf[:0]
	switch {
	case len(erase)+len(paint) == 0:
		out = append(out, b...)
	case len(erase) == 0:
		out = p.update(append(out, b...), s, paint)
	case !s.Drawable(): // this one could end within a sequence, or an update, of the program
		out = append(append(out, alone...), b...)
	default:
		out = p.update(out, s, erase, b, paint)
	}
	if p.buf = out; cap(out) > maxKept {
		p.buf = nil
	}
	_, err := p.out.Write(out)
	p.paintAt(until)
	return err
}

// update appends what is to be shown at once. Then the terminal shows s, or what is painted.
func (p *painter) update(b []byte, s *screen.Screen, parts ...[]byte) []byte {
	b = append(b, beginUpdate...)
	for _, part := range parts {
		b = append(b, part...)
	}
	b = append(b, endUpdate...)
	if !p.painted { // what ends the update has come between the last character and what may combine with that
		b = s.Erase(b, nil, place(s))
	}
	return b
}

// learn tells the predictor what was read and typed since, in that order.
func (p *painter) learn(now time.Time, s *screen.Screen) {
	if p.hinted && p.behind {
		p.predictor.Hinted(now, s, p.hint)
		p.hinted = false
	}
	if p.unread {
		p.predictor.Output(now, s)
	}
	if p.hinted {
		p.predictor.Hinted(now, s, p.hint)
	}
	p.unread, p.hinted, p.behind = false, false, false
	p.mu.Lock()
	taken, forgot := p.keys, p.forgot
	p.keys, p.forgot = nil, false
	p.mu.Unlock()
	if forgot {
		p.predictor.Reset(now)
	}
	for _, k := range taken {
		p.predictor.SetRTT(k.rtt)
		p.predictor.Typed(k.at, s, k.typed, k.frame)
		p.frame, p.keyAt = max(p.frame, k.frame), k.at
		clear(k.typed)
	}
}

// hintedAt takes a hint, which belongs to this place of the output.
func (p *painter) hintedAt(h wire.Hint) error {
	now := time.Now()
	p.received = max(p.received, h.In)
	if !p.busy(now) {
		p.hint, p.hinted, p.behind = h, true, false
		return nil
	}
	s := p.seen.now()
	p.learn(now, s)
	p.predictor.Hinted(now, s, h)
	return p.repaint()
}

// repaint draws what the predictor shows now. It writes only if that has changed.
func (p *painter) repaint() (err error) {
	now, s := time.Now(), p.seen.now()
	p.learn(now, s)
	painted, cells, cursor := p.painted, p.cells, p.cursor
	erase := p.erase(s)
	paint, until := p.paint(now, s)
	if painted != p.painted || painted && (cursor != p.cursor || !slices.Equal(cells, p.cells)) {
		p.buf = p.update(p.buf[:0], s, erase, paint)
		_, err = p.out.Write(p.buf)
	}
	p.paintAt(until)
	return err
}

// setOffline says whether the server is out of reach.
func (p *painter) setOffline(offline bool) {
	p.predictor.SetOffline(offline)
	p.paintSoon()
}

// resized says that the terminal has another size, and where the program's cursor was before. The terminal
// has cut off or moved what is drawn, with the row of the cursor.
func (p *painter) resized(s *screen.Screen, before screen.Place) {
	cols, rows := s.Size()
	down := place(s).Y - before.Y
	kept := p.cells[:0]
	for _, c := range p.cells {
		if c.Y += down; c.Y >= 0 && c.Y < rows && c.X < cols {
			c.Cell.Width = min(c.Cell.Width, cols-c.X) // of half a character, its colours stay
			kept = append(kept, c)
		}
	}
	p.cells = kept
	p.cursor = screen.Place{X: min(p.cursor.X, cols-1), Y: min(max(p.cursor.Y+down, 0), rows-1)}
}

// eraseAll leaves nothing drawn on the terminal.
func (p *painter) eraseAll() {
	if p.painted {
		s := p.seen.now()
		p.out.Write(p.update(nil, s, p.erase(s)))
	}
}

// reset says that what the predictor knows of the screen is no longer right.
func (p *painter) reset() {
	p.eraseAll()
	p.unread, p.hinted = false, false
	p.predictor.Reset(time.Now())
}

// setMode says when predictions are drawn.
func (p *painter) setMode(m predict.Mode) {
	p.eraseAll()
	p.mode = m
	p.predictor.SetMode(m)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetLocked()
	if p.off = m == predict.Never; p.off {
		p.timer.Stop()
		p.due = time.Time{}
	}
}

// erase returns what undoes paint.
func (p *painter) erase(s *screen.Screen) (b []byte) {
	if p.painted {
		b = s.Erase(nil, p.cells, p.cursor)
	}
	p.painted = false
	return b
}

// place returns where the program has left the cursor.
func place(s *screen.Screen) screen.Place {
	x, y := s.Cursor()
	return screen.Place{X: x, Y: y}
}

// paint returns what draws the predictions, and when to paint again. The timer is set for that after the
// write: it may wake another thread.
func (p *painter) paint(now time.Time, s *screen.Screen) (b []byte, until time.Time) {
	o, until := p.predictor.Overlay(now, s)
	if again := now.Add(lookAgain); p.predictor.InDoubt() && (until.IsZero() || again.Before(until)) {
		until = again
	}
	if p.hold || !s.Drawable() {
		return nil, until
	}
	p.cells = nil
	for _, c := range o.Cells {
		if placed := (screen.Placed{Place: screen.Place{X: c.X, Y: c.Y}, Cell: c.Cell}); s.CanDraw(placed) {
			p.cells = append(p.cells, placed)
		}
	}
	from := place(s)
	cols, _ := s.Size()
	p.cursor = screen.Place{X: min(from.X, cols-1), Y: from.Y}
	moved := false
	if c := o.Cursor; c != nil && s.CanMove(screen.Place(*c)) {
		moved = screen.Place(*c) != p.cursor
		p.cursor = screen.Place(*c)
	}
	if p.painted = moved || len(p.cells) > 0; !p.painted {
		return nil, until
	}
	return s.Draw(nil, p.cells, from, p.cursor), until
}
