package drive

import (
	"context"
	"encoding/hex"
	"errors"
	"io"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// ErrBusy means that no shell waits at its prompt.
var ErrBusy = errors.New("no shell waits at a prompt")

// ErrOutputLost means that a command has ended, and a part of its output, which may have had its status, was lost: the
// server does not keep more.
var ErrOutputLost = errors.New("the command has ended, and the server has lost a part of its output")

// A Line is a command line for Run.
type Line struct {
	Text string
	Wait bool   // for the prompt
	ID   string // as in [Input], for Run: a line that was run before gives its output and its status again
}

// Run attaches to a session and runs a command line there as [Terminal.Run] does. It takes a round trip less than that.
func Run(ctx context.Context, c *client.Client, name string, line Line, out io.Writer) (status int, a Answer, err error) {
	e := line.entry(ctx)
	t := &Terminal{command: newCommand(e, out)}
	req := &wire.Attach{Role: wire.RoleShare, Replay: wire.Replay{Kind: wire.ReplayNone}, Input: e.Append(nil)}
	if _, err := t.open(ctx, c, name, req); err != nil {
		return 0, a, err
	}
	defer t.Close()
	t.gate.Lock()
	defer t.gate.Unlock()
	return t.ranLocked(ctx, 1)
}

// Run types a command line into the session's shell, waits for its end, and returns its exit status. Its output, as
// text without control sequences, goes to out as it comes. Run fails with [ErrBusy] if the shell does not wait at its
// prompt. It waits for the end of a command line that another client runs so.
//
// Where the shell marks its prompts (OSC 133), that says what the output is, and what the status. Elsewhere the line
// that is typed prints marks of its own, and begins with a space, so that shells may keep it out of their history. An
// end counts when the session's own shell is in the foreground again and reads: what the command prints cannot end it.
//
// At the end of ctx, and after an error of out, the command runs on. Run blocks while out does.
func (t *Terminal) Run(ctx context.Context, line Line, out io.Writer) (status int, a Answer, err error) {
	line.ID = "" // what was printed then is not at hand
	e := line.entry(ctx)
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.over {
		return 0, a, t.overLocked(ctx)
	}
	t.command = newCommand(e, out)
	defer func() { t.command = nil }()
	t.gate.Unlock()
	frame, err := t.session.Enter(e)
	t.gate.Lock()
	if err != nil {
		return 0, a, err
	}
	return t.ranLocked(ctx, frame)
}

func (l *Line) entry(ctx context.Context) *wire.Entry {
	e := newEntry(ctx, l.Text, l.ID)
	e.Run, e.Wait = true, l.Wait
	return e
}

// ranLocked waits for the end of the command line that a frame of input has.
func (t *Terminal) ranLocked(ctx context.Context, frame uint64) (status int, a Answer, err error) {
	if err := t.enteredLocked(ctx, frame); err != nil {
		return 0, a, err
	}
	if !t.command.begun {
		return 0, a, errors.New("a command line with this id was typed meanwhile, by another client: ask again")
	}
	c, hints := t.command, 0
	err = t.awaitLocked(ctx, func() bool {
		if c.end < 0 && !c.lost {
			hints = t.hints
		}
		return c.failed != nil || c.over || (c.end >= 0 || c.lost) && t.hints > hints && t.hint.AtPrompt()
	})
	c.finish()
	a = t.answerLocked()
	switch {
	case err != nil:
	case c.failed != nil:
		err = c.failed
	case c.lost:
		err = ErrOutputLost
	}
	return c.status, a, err
}

func (t *Terminal) overLocked(ctx context.Context) error {
	return t.awaitLocked(ctx, func() bool { return false })
}

func newCommand(e *wire.Entry, out io.Writer) *command {
	c := &command{nonce: hex.EncodeToString(e.ID[:]), end: -1}
	c.out = func(text []byte) {
		if c.failed == nil {
			_, c.failed = out.Write(text)
		}
	}
	return c
}
