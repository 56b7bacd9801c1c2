package terminal

import (
	"context"
	"io"
	"sync"

	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Pane is a terminal in memory, such as that of a page.
type Pane struct {
	In    io.Reader        // what is typed
	Out   io.Writer        // shows what is written, with the control sequences of xterm
	Sizes <-chan wire.Size // brings each new size

	// Follow, if it is not nil, gives the pane the size of the session, whoever owns that (own: this client), before the
	// output for it. Sizes then brings that which the session is to have while this client owns its size, or none to
	// give it back. Take asks for it.
	Follow func(s wire.Sizing, own bool)
	Take   <-chan struct{}
}

// RunPane is Run for a terminal with a Pane, after Streams. When it returns, nothing is written to the pane any more. The
// goroutine that reads In stays in Read until that returns.
func (t *Terminal) RunPane(ctx context.Context, s Session, size wire.Size) (status int, err error) {
	defer func() { t.display.restore(err != nil || s.Exit().Reason != "") }()
	if follow := t.cfg.Pane.Follow; follow != nil {
		t.view.follow = follow
		t.display.begin(s.Sizing().Size, true, nil)
	} else {
		t.display.begin(size, true, nil)
	}
	t.view.begin(s.Number(), s.Sizing(), size, true)
	defer t.view.stop()
	t.display.predict(predict.New(t.cfg.Predict), t.cfg.Predict, s.RTT, s.AskHint)
	k := newKeyboard(s, t.display, t.view, t.cfg)
	defer k.close()
	var sizes sync.WaitGroup
	defer sizes.Wait()
	done := make(chan struct{})
	defer close(done)
	sizes.Go(func() {
		for {
			select {
			case size := <-t.cfg.Pane.Sizes:
				t.view.resize(size)
				s.Resize(size)
			case <-t.cfg.Pane.Take:
				s.TakeSize(t.view.takes())
			case <-done:
				return
			}
		}
	})
	go k.read(t.cfg.Pane.In, false)
	return s.Run(ctx)
}
