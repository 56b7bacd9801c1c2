// Package terminal is the user's terminal during a session of package client. It reads the keyboard and finds escapes in
// what is typed, shows the program's output, follows the size of the window, and leaves the terminal as it was before
// the session. A [Watch] shows a session that others type in. Before a session, a [Dialog] lets another program,
// such as ssh, ask the user.
package terminal

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Config says which terminal to use, and how.
type Config struct {
	In, Out *os.File     // need not be a terminal
	Escape  string       // the setting escape_char
	Predict predict.Mode // when to show what typed keys will show

	Host   string                     // as the user named it
	Role   wire.Role                  // of this client
	Skips  bool                       // the server does not wait for this client
	Needs  func() string              // what ssh needs of the user to connect again, or nothing; nil for nothing
	Status func(client.Status) string // the answer to the escape for the state of the connection
}

// A Session is what a terminal needs of a [client.Session].
type Session interface {
	Run(context.Context) (status int, err error)
	Write([]byte) (int, error)
	TryWrite([]byte) (n int, frame uint64, err error)
	Flush()
	AskHint()
	RTT() time.Duration
	CloseWrite() error
	Resize(wire.Size) error
	Sizing() wire.Sizing
	Number() uint64
	TakeSize(wire.Size) error
	Skip() error
	Leave()
	Status() client.Status
	Exit() wire.ExitStatus
}

// A Terminal connects a user's terminal to one session.
type Terminal struct {
	cfg     Config
	display *display
	view    *view // nil without Streams
}

// New returns a terminal. It changes nothing before Run.
func New(cfg Config) *Terminal {
	t := &Terminal{cfg: cfg, display: newDisplay(cfg.Out, cfg)}
	if !term.IsTerminal(int(cfg.Out.Fd())) {
		t.display.aside = os.Stderr
	}
	return t
}

// Streams returns where the session's output and events are to go.
func (t *Terminal) Streams() client.Streams {
	t.view = newView(t.display, newEscapeFilter(t.cfg.Escape).char)
	return client.Streams{
		Stdout:    t.view,
		Replaying: t.view.replaying,
		Replayed:  t.view.replayed,
		Changed:   t.display.setLink,
		Joined:    func(p wire.Presence) { t.display.notice(joinedText(p)) },
		Left:      func(p wire.Presence) { t.display.notice(leftText(p)) },
		Ending:    func(by string) { t.display.notice(EndingText(by)) },
		Lost:      t.view.lost,
		Began:     t.view.began,
		Resized:   t.view.resized,
		Hinted:    t.view.hinted,
	}
}

// Size returns the size of the window: that of the first standard stream that is a
// terminal, or else 80×24.
func (t *Terminal) Size() wire.Size { return windowSize() }

// Print shows lines of the caller between the program's output.
func (t *Terminal) Print(text string) { t.display.print(text) }

// Run runs the session, which was attached with the given size, until it ends or the
// user leaves it. It returns what the session's Run returns, and then leaves the
// terminal as it was, with the cursor at the start of an empty line if there is an error
// or a reason of the end to report. The goroutine that reads In stays in Read until the next key: Run is
// for programs that end after it.
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
	k := newKeyboard(s, t.display, t.view, t.cfg)
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
