package terminal

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// predict begins to show what typed keys will show. ask asks the server for a hint.
func (d *display) predict(p predictor, mode predict.Mode, rtt func() time.Duration, ask func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.painter = &painter{
		predictor: p, out: d.out, seen: d.seen, rtt: rtt,
		usual: mode, hold: d.size != d.session,
	}
	d.painter.wake = func() {
		if d.paint() {
			ask()
		}
	}
	d.painter.timer = newTimer(d.painter.wake)
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

// typing returns the painter, locked, which is to be told what was typed before it takes output for an echo of that;
// nil if what is typed has no place on the terminal that is known.
func (d *display) typing() *painter {
	if d.painter == nil || d.windowed.Load() {
		return nil
	}
	d.painter.mu.Lock()
	return d.painter
}

// hinted takes what the server knows at this place of the output.
func (d *display) hinted(h wire.Hint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.painter != nil {
		d.painter.hintedAt(h)
	}
}

// predictions returns a line about the predictions, with the end of the line before, or nothing if there are none.
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
