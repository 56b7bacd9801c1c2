package terminal

import (
	"runtime"
	"time"

	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// predict begins to show what typed keys will show. ask asks the server for a hint. The direct way to the
// terminal may be nil.
func (d *display) predict(p predictor, mode predict.Mode, rtt func() time.Duration, ask func(), direct *direct) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.painter = &painter{
		predictor: p, out: d.out, direct: direct, seen: d.seen, rtt: rtt, ask: ask,
		usual: mode, hold: d.size != d.session,
	}
	d.painter.wake = func() {
		if d.paint() {
			ask()
		}
	}
	d.painter.timer = time.AfterFunc(time.Hour, d.painter.wake)
	d.painter.timer.Stop()
	d.painter.setMode(mode)
}

// paint shows what typed keys will show. It reports whether the server is to be asked for a hint.
func (d *display) paint() (inDoubt bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.painter
	p.beginPaint()
	p.repaint()
	return p.predictor.InDoubt()
}

// A typing is the drawing of typed bytes while they enter the log of the input.
type typing struct {
	display *display
	painter *painter // or nil: what is typed has no place on the terminal that is known
	later   bool     // another goroutine is to draw
	inDoubt bool     // the server is to be asked for a hint
}

// beginTyping begins to draw bytes that are to enter the log. Until draw, no output is taken for their echo.
func (d *display) beginTyping() typing {
	t := typing{display: d}
	if d.painter != nil && !d.windowed.Load() {
		t.painter = d.painter
		t.painter.mu.Lock()
	}
	return t
}

// draw shows what typed bytes will show, of which n are in frames up to one. It does not wait for the terminal.
func (t *typing) draw(b []byte, n int, frame uint64, err error) {
	if t.painter == nil {
		return
	}
	predicts := false
	if err == nil {
		predicts = t.painter.typedLocked(b, n, frame)
	}
	t.painter.mu.Unlock()
	if predicts {
		drawn := false
		drawn, t.inDoubt = t.display.paintAtOnce()
		t.later = !drawn
	}
}

// finish lets another goroutine draw what draw could not.
func (t *typing) finish() {
	if t.later {
		t.painter.paintSoon()
		runtime.Gosched() // to the goroutine that paints
	}
}

// paintAtOnce shows what typed keys will show, unless that is for another goroutine: one that may wait
// for the terminal, or that has much to read before.
func (d *display) paintAtOnce() (done, inDoubt bool) {
	p := d.painter
	if !d.mu.TryLock() {
		return false, false
	}
	if p.direct == nil || !d.seen.calm() { // no more output comes while mu is locked
		d.mu.Unlock()
		return false, false
	}
	p.beginPaint()
	out, until := p.render()
	rest := out[p.direct.write(out):]
	inDoubt = p.predictor.InDoubt()
	finish := func() {
		if len(rest) > 0 {
			p.out.Write(rest)
		}
		p.paintAt(until)
		d.mu.Unlock()
	}
	if len(rest) > 0 { // the terminal takes no more now
		go finish()
	} else {
		finish()
	}
	return true, inDoubt
}

// hinted takes what the server knows at this place of the output.
func (d *display) hinted(h wire.Hint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.painter != nil {
		d.painter.hintedAt(h)
	}
}

// predictions returns a line about the predictions, with the end of the line before, or nothing if there
// are none.
func (d *display) predictions() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.painter == nil {
		return ""
	}
	return "\n" + predictionsText(d.painter.mode, d.painter.predictor.Score())
}

// switchPredictions begins or ends to show predictions, if that is possible.
func (d *display) switchPredictions() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.painter
	if p == nil {
		return false
	}
	switch {
	case p.mode != predict.Never:
		p.setMode(predict.Never)
	case p.usual != predict.Never:
		p.setMode(p.usual)
	default:
		p.setMode(predict.Adaptive)
	}
	d.printLocked(predictionsText(p.mode, p.predictor.Score()))
	return true
}
