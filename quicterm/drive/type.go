package drive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxLine is how many bytes of a line the kernel takes that edits lines itself, with the end of the line (N_TTY of
// Linux).
const maxLine = 4096

// An Input is what Send types, in this order.
type Input struct {
	Text  string // a line feed in it is as Enter
	Keys  []string
	Enter bool

	// Secret is for a password: Text and Enter are typed only if the program reads a line that it does not show then.
	// The server checks that when it types them.
	Secret bool
}

// ErrNotSecret means that a secret was not typed, because the program would have shown it.
var ErrNotSecret = errors.New("no program reads a password: nothing was typed")

// An UnreadError means that the time has ended before the session's program has read all input. What is not read stays
// in the terminal.
type UnreadError struct{ Bytes int }

func (e *UnreadError) Error() string {
	return fmt.Sprintf("%d bytes are typed, and the program has not read them", e.Bytes)
}

// Send types, and returns when the program has read it: when the input has left the kernel's queue of the terminal.
// Text is a paste for a program that has asked for bracketed paste. Where the kernel edits lines, text and Enter are
// one write. Elsewhere Enter follows when the text was read and the terminal is still: a program may take what comes at
// once for a part of the paste. At the end of ctx it returns an [UnreadError]; nothing is typed twice.
func (t *Terminal) Send(ctx context.Context, in Input) error {
	keys, err := keyBytes(in.Keys)
	if err != nil {
		return err
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	if in.Secret {
		return t.typeSecretLocked(ctx, in.Text+"\r")
	}
	text := t.pasteLocked(in.Text)
	if in.Enter {
		keys = append(keys, '\r')
	}
	if t.hint.Terminal&wire.Canonical != 0 {
		line := slices.MaxFunc(strings.Split(text, "\r"), func(a, b string) int { return len(a) - len(b) })
		if len(line) >= maxLine {
			return fmt.Errorf("a line has %d bytes, and the terminal takes %d: the program reads lines", len(line), maxLine-1)
		}
		return t.typeLocked(ctx, append([]byte(text), keys...))
	}
	if text != "" {
		if err := t.typeLocked(ctx, []byte(text)); err != nil || len(keys) == 0 {
			return err
		}
		if err := t.stillLocked(ctx, settled); err != nil {
			return err
		}
	}
	return t.typeLocked(ctx, keys)
}

// pasteLocked returns text as a terminal sends it: as a paste, if the program knows the end of one. An end within the
// text is removed.
func (t *Terminal) pasteLocked(text string) string {
	text = strings.NewReplacer("\r\n", "\r", "\n", "\r").Replace(text)
	if text == "" || !t.screen.BracketedPaste() {
		return text
	}
	const begin, end = "\x1b[200~", "\x1b[201~"
	for strings.Contains(text, end) {
		text = strings.ReplaceAll(text, end, "")
	}
	return begin + text + end
}

// typeLocked sends input, and waits until the program has read it.
func (t *Terminal) typeLocked(ctx context.Context, input []byte) error {
	type part struct {
		frame uint64
		bytes int
	}
	var parts []part
	for left := input; len(left) > 0; {
		n, frame, err := t.session.TryWrite(left)
		if err != nil {
			return t.overLocked(ctx)
		}
		t.session.Flush()
		if left = left[n:]; n > 0 {
			parts = append(parts, part{frame, n})
		} else if _, err := t.awaitFor(ctx, settled, func() bool { return false }); err != nil {
			return t.unread(err, len(left))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	err := t.awaitLocked(ctx, func() bool { return t.hint.Taken >= parts[len(parts)-1].frame })
	unread := 0
	for _, p := range parts {
		if p.frame > t.hint.Taken {
			unread += p.bytes
		}
	}
	return t.unread(err, unread)
}

func (t *Terminal) typeSecretLocked(ctx context.Context, line string) error {
	t.refused = false
	t.gate.Unlock()
	frame, err := t.session.WriteSecret([]byte(line))
	t.gate.Lock()
	if err != nil {
		return err
	}
	err = t.awaitLocked(ctx, func() bool { return t.refused || t.hint.Taken >= frame })
	if t.refused {
		return ErrNotSecret
	}
	if t.hint.Taken < frame {
		return t.unread(err, len(line))
	}
	return err
}

// unread returns the error of input of which some bytes are not read.
func (t *Terminal) unread(err error, bytes int) error {
	if errors.Is(err, context.DeadlineExceeded) && bytes > 0 {
		return &UnreadError{bytes}
	}
	return err
}

// overLocked returns why the session is over.
func (t *Terminal) overLocked(ctx context.Context) error {
	return t.awaitLocked(ctx, func() bool { return false })
}

// Keys that have names, as a terminal in its usual mode sends them.
var namedKeys = map[string]string{
	"Enter": "\r", "Tab": "\t", "Escape": "\x1b", "Space": " ", "Backspace": "\x7f", "Delete": "\x1b[3~",
	"Up": "\x1b[A", "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D", "Home": "\x1b[H", "End": "\x1b[F",
	"PageUp": "\x1b[5~", "PageDown": "\x1b[6~", "Insert": "\x1b[2~",
	"F1": "\x1bOP", "F2": "\x1bOQ", "F3": "\x1bOR", "F4": "\x1bOS", "F5": "\x1b[15~", "F6": "\x1b[17~",
	"F7": "\x1b[18~", "F8": "\x1b[19~", "F9": "\x1b[20~", "F10": "\x1b[21~", "F11": "\x1b[23~", "F12": "\x1b[24~",
}

// keyBytes returns what keys send: C-x is control, M-x is Alt, other names are those of namedKeys or one character.
func keyBytes(keys []string) (b []byte, err error) {
	for _, key := range keys {
		name := key
		if rest, ok := strings.CutPrefix(name, "M-"); ok {
			b, name = append(b, 0x1b), rest
		}
		control, ok := strings.CutPrefix(name, "C-")
		switch {
		case ok && len(control) == 1 && (control[0] >= '@' && control[0] <= '_' || control[0] >= 'a' && control[0] <= 'z'):
			b = append(b, control[0]&0x1f)
		case ok && control == "Space":
			b = append(b, 0)
		case namedKeys[name] != "":
			b = append(b, namedKeys[name]...)
		case len([]rune(name)) == 1:
			b = append(b, name...)
		default:
			return nil, fmt.Errorf("no key is named %q: use one character, C-c, M-x, Enter, Tab, Escape, Up, F1 and the like", key)
		}
	}
	return b, nil
}
