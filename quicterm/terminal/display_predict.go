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

// typed passes typed bytes to take, which returns the frame that they are in, shows what they will show,
// and calls send. It does not wait for the terminal.
func (d *display) typed(b []byte, take func([]byte) (n int, frame uint64, err error), send func()) (int, error) {
	p := d.painter
	if p == nil || d.windowed.Load() {
		n, _, err := take(b)
		send()
		return n, err
	}
	n, predicts, err := p.typed(b, take)
	painted, inDoubt := false, false
	if predicts { // before the send, which wakes other threads
		painted, inDoubt = d.paintAtOnce()
	}
	send()
	switch {
	case inDoubt:
		p.ask()
	case predicts && !painted:
		p.paintSoon()
		runtime.Gosched() // to the goroutine that paints
	}
	return n, err
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
	return "\n" + d.messages.Predictions(d.painter.mode, d.painter.predictor.Score())
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
	d.printLocked(d.messages.Predictions(p.mode, p.predictor.Score()))
	return true
}
