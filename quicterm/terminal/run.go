//go:build !js

package terminal

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Run runs the session, which was attached with the given size, until it ends or the user leaves it. It returns what
// the session's Run returns, and then leaves the terminal as it was, with the cursor at the start of an empty line if
// there is an error or a reason of the end to report. The goroutine that reads In stays in Read until the next key:
// Run is for programs that end after it.
func (t *Terminal) Run(ctx context.Context, s Session, size wire.Size) (status int, err error) {
	reset := func() {}
	raw := term.IsTerminal(int(t.cfg.In.Fd()))
	terminal := term.IsTerminal(int(t.cfg.Out.Fd()))
	var guard *watchdog
	if terminal {
		guard = newWatchdog(t.cfg.In, t.cfg.Out)
	}
	if raw {
		if reset, err = makeRaw(int(t.cfg.In.Fd())); err != nil {
			guard.dismiss()
			return 0, fmt.Errorf("terminal: %w", err)
		}
	}
	restore := sync.OnceFunc(func() {
		t.display.restore(err != nil || s.Exit().Reason != "")
		reset()
	})
	defer restore()
	onPanic := func() { // a panic must not leave the terminal raw
		if cause := recover(); cause != nil {
			restore()
			panic(cause)
		}
	}
	if terminal {
		if out := Polled(t.cfg.Out, os.O_WRONLY); out != nil {
			t.display.out = out
		}
	}
	in := io.Reader(t.cfg.In)
	if raw {
		if again := Polled(t.cfg.In, os.O_RDONLY); again != nil {
			in = again
		}
	}
	t.display.begin(size, terminal, guard)
	resize := t.display.setSize
	if t.view != nil {
		t.view.begin(s.Number(), s.Sizing(), size, terminal)
		defer t.view.stop()
		resize = t.view.resize
	}
	resized := func(size wire.Size) {
		resize(size)
		s.Resize(size)
	}
	if now := t.Size(); now != size { // a login may take long
		resized(now)
	}
	stop := watchSize(func() {
		defer onPanic()
		resized(t.Size())
	})
	defer stop()
	if raw && terminal {
		t.display.predict(predict.New(t.cfg.Predict), t.cfg.Predict, s.RTT, s.AskHint)
	}
	cfg := t.cfg
	if !raw || !terminal {
		cfg.Forwards, cfg.Paste, cfg.Offers = nil, nil, nil
	}
	k := newKeyboard(s, t.display, t.view, cfg)
	defer k.close()
	if raw {
		// A stopped job leaves the terminal to a shell.
		yield := func(use func()) {
			defer onPanic()
			changed := t.display.yield(func() wire.Size {
				use()
				return t.Size()
			})
			if changed {
				resized(t.Size())
			}
		}
		again := func() { makeRaw(int(t.cfg.In.Fd())) }
		suspend, stop := watchStops(func() {
			again() // stops a job in the background before it writes
			yield(func() {})
		}, func(stop func()) {
			yield(func() {
				reset()
				stop()
				again()
			})
		})
		k.suspend = suspend
		defer stop()
	}
	go func() {
		defer onPanic()
		k.read(in, !raw)
	}()
	return s.Run(ctx)
}
