package drive

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// ErrBusy means that no shell waits at its prompt.
var ErrBusy = errors.New("no shell waits at a prompt")

// ErrOutputLost means that a command has ended, and a part of its output, which may have had its status, was lost: the
// server does not keep more.
var ErrOutputLost = errors.New("the command has ended, and the server has lost a part of its output")

// Run types a command line into the session's shell, waits for its end, and returns its exit status. Its output, as
// text without control sequences, goes to out as it comes. Run fails with [ErrBusy] if the shell does not wait at its
// prompt.
//
// Where the shell marks its prompts (OSC 133), that says what the output is, and what the status. Elsewhere the line
// that is typed prints marks of its own, and begins with a space, so that shells may keep it out of their history. An
// end counts when the session's own shell is in the foreground again and reads: what the command prints cannot end it.
//
// At the end of ctx, and after an error of out, the command runs on. Run blocks while out does.
func (t *Terminal) Run(ctx context.Context, line string, out io.Writer) (status int, err error) {
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.over {
		return 0, t.overLocked(ctx)
	}
	if !t.atPromptLocked() {
		return 0, t.busyLocked()
	}
	var failed error
	c := &command{end: -1, out: func(text []byte) {
		if failed == nil {
			_, failed = out.Write(text)
		}
	}}
	if in, known := t.screen.InputZone(); !known || !in {
		var nonce [8]byte
		rand.Read(nonce[:])
		c.nonce = hex.EncodeToString(nonce[:])
		line = marked(line, c.nonce, t.hint.Context)
	}
	text := t.pasteLocked(line)
	if strings.Contains(line, "\n") && !t.screen.BracketedPaste() {
		return 0, errors.New("the shell takes no paste, so that a command of several lines would be several commands")
	}
	t.command = c
	defer func() { t.command = nil }()
	if err := t.typeLocked(ctx, []byte(text+"\r")); err != nil {
		return 0, err
	}
	hints := 0
	err = t.awaitLocked(ctx, func() bool {
		if c.end < 0 && !c.lost {
			hints = t.hints
		}
		return failed != nil || (c.end >= 0 || c.lost) && t.hints > hints && t.atPromptLocked()
	})
	c.finish()
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, failed
	case c.lost:
		return 0, ErrOutputLost
	}
	return c.status, nil
}

// atPromptLocked reports whether the session's own shell is in the foreground and waits for a command. Where the kernel
// edits lines, a shell that does so itself at its prompt is at something else, such as "read".
func (t *Terminal) atPromptLocked() bool {
	h := t.hint
	return h.Reading && h.Terminal&wire.Shell != 0 && (h.Terminal&wire.Canonical == 0 || !editors[h.Context])
}

// editors are the shells that edit their lines themselves.
var editors = map[uint16]bool{
	wire.ContextOf([]byte("bash")): true, wire.ContextOf([]byte("zsh")): true, fish: true,
}

// fish is the shell that is not like the others.
var fish = wire.ContextOf([]byte("fish"))

// busyLocked says why no shell waits at its prompt.
func (t *Terminal) busyLocked() error {
	switch {
	case t.hint.Terminal&wire.Shell != 0:
		return fmt.Errorf("%w: the shell is at work", ErrBusy)
	case t.hint.Reading:
		return fmt.Errorf("%w: another program is in the foreground, and waits for input", ErrBusy)
	}
	return fmt.Errorf("%w: another program is in the foreground", ErrBusy)
}

// marked returns a command line for a shell that runs a line and prints marks with a nonce around its output.
func marked(line, nonce string, shell uint16) string {
	status := "$?"
	quoted := "'" + strings.ReplaceAll(line, "'", `'\''`) + "'"
	if shell == fish {
		status, quoted = "$status", "'"+strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(line)+"'"
	}
	return fmt.Sprintf(` printf '\033]8133;C;%s\007'; eval %s; printf '\033]8133;D;%%s;%s\007' "%s"`,
		nonce, quoted, nonce, status)
}
