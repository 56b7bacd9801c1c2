package drive

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An Input is what Send types, in this order.
type Input struct {
	Text  string // a line feed in it is as Enter
	Keys  []string
	Enter bool

	// Secret is for a password: Text and Enter are typed only if the program reads a line that it does not show then.
	// The server checks that when it types them.
	Secret bool

	// ID names this input, or is empty. The server knows the last 64 inputs: it does not type one again that has the ID of
	// one of them, and gives the answer of that.
	ID string
}

// ErrNotSecret means that a secret was not typed, because the program would have shown it.
var ErrNotSecret = errors.New("no program reads a password: nothing was typed")

// An UnreadError means that the time has ended before the session's program has read all input. What is not read stays
// in the terminal. Bytes is 0 if that is a secret.
type UnreadError struct{ Bytes int }

func (e *UnreadError) Error() string {
	if e.Bytes == 0 {
		return "what is typed has not been read by the program"
	}
	return fmt.Sprintf("%d bytes are typed, and the program has not read them", e.Bytes)
}

// An Answer says what has come of something that was to be typed.
type Answer struct {
	Bytes   int      `json:"bytes"`              // that were typed, with the marks of a paste; 0 for a secret
	Unread  int      `json:"unread"`             // of them
	Since   uint64   `json:"since"`              // the offset of the output before that: for Tail, and to wait for what comes of it
	Again   bool     `json:"again,omitempty"`    // it was typed before, with the same ID: this is the answer of then
	After   string   `json:"after,omitempty"`    // the client that typed by a program before, and was waited for
	Typists []string `json:"typed_by,omitempty"` // other clients that have typed since
}

// Send attaches to a session and types as [Terminal.Send] does. It takes a round trip less than that.
func Send(ctx context.Context, c *client.Client, name string, in Input) (Answer, error) {
	e, err := in.entry(ctx)
	if err != nil {
		return Answer{}, err
	}
	req := &wire.Attach{Role: wire.RoleShare, Replay: wire.Replay{Kind: wire.ReplayNone}, Input: e.Append(nil)}
	t, err := new(Terminal).open(ctx, c, name, req)
	if err != nil {
		return Answer{}, err
	}
	defer t.Close()
	t.gate.Lock()
	defer t.gate.Unlock()
	return t.readLocked(ctx, 1)
}

// Send types, and returns when the program has read it: when the input has left the kernel's queue of the terminal.
// Text is a paste for a program that has asked for bracketed paste. Where the kernel edits lines, text and Enter are
// one write. Elsewhere Enter follows when the text was read and the terminal is still: a program may take what comes at
// once for a part of the paste. What other programs type into the session is waited for. Send also returns when the
// program ends. At the end of ctx it returns an [UnreadError]; nothing is typed twice.
func (t *Terminal) Send(ctx context.Context, in Input) (Answer, error) {
	e, err := in.entry(ctx)
	if err != nil {
		return Answer{}, err
	}
	frame, err := t.session.Enter(e)
	if err != nil {
		return Answer{}, err
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	return t.readLocked(ctx, frame)
}

// readLocked waits until the program has read what a frame of input has.
func (t *Terminal) readLocked(ctx context.Context, frame uint64) (a Answer, err error) {
	if err = t.enteredLocked(ctx, frame); err != nil {
		return a, err
	}
	err = t.awaitLocked(ctx, func() bool { return t.hint.Taken >= frame })
	a = t.answerLocked()
	if t.hint.Taken >= frame || errors.As(err, new(*ExitError)) { // as a key that quits the program does
		return a, nil
	}
	if a.Unread = a.Bytes; errors.Is(err, context.DeadlineExceeded) {
		err = &UnreadError{a.Bytes}
	}
	return a, err
}

// answerLocked returns what was answered last.
func (t *Terminal) answerLocked() Answer {
	return Answer{
		Bytes: int(t.entered.Bytes), Since: t.entered.Offset, Again: t.entered.Again, After: t.entered.After,
		Typists: t.typists,
	}
}

// enteredLocked waits until what a frame of input has is typed, or is known not to be.
func (t *Terminal) enteredLocked(ctx context.Context, frame uint64) error {
	if err := t.awaitLocked(ctx, func() bool { return t.entered.Frame == frame }); err != nil {
		return err
	}
	switch t.entered.Outcome {
	case wire.Typed:
		return nil
	case wire.ShellBusy:
		return fmt.Errorf("%w: the shell is at work", ErrBusy)
	case wire.OtherReads:
		return fmt.Errorf("%w: another program is in the foreground, and waits for input", ErrBusy)
	case wire.OtherBusy:
		return fmt.Errorf("%w: another program is in the foreground", ErrBusy)
	case wire.NotSecret:
		return ErrNotSecret
	case wire.LongLine:
		return errors.New("a line is longer than the 4095 bytes that the terminal takes: the program reads lines")
	case wire.NoPaste:
		return errors.New("the shell takes no paste, so that a command of several lines would be several commands")
	}
	return fmt.Errorf("nothing was typed, for a reason that this version does not know (%d)", t.entered.Outcome)
}

// entry returns what the server types.
func (in *Input) entry(ctx context.Context) (*wire.Entry, error) {
	keys, err := keyBytes(in.Keys)
	if err != nil {
		return nil, err
	}
	e := newEntry(ctx, in.Text, in.ID)
	e.Keys, e.Enter, e.Secret = keys, in.Enter || in.Secret, in.Secret
	if n := len(e.Text) + len(e.Keys); n > wire.MaxEntry {
		return nil, fmt.Errorf("%d bytes to type, more than %d: send them in parts", n, wire.MaxEntry)
	}
	return e, nil
}

// newEntry returns an entry for the time that a context leaves. Without an id it is another one each time.
func newEntry(ctx context.Context, text, id string) *wire.Entry {
	e := &wire.Entry{Text: []byte(strings.NewReplacer("\r\n", "\r", "\n", "\r").Replace(text))}
	if id == "" {
		rand.Read(e.ID[:])
	} else {
		sum := sha256.Sum256([]byte(id))
		copy(e.ID[:], sum[:])
	}
	if until, ok := ctx.Deadline(); ok {
		e.Within = min(max(time.Until(until), time.Millisecond), 24*24*time.Hour)
	}
	return e
}
