// Package drive lets programs use sessions as people do: it types into a session's terminal, waits until that shows
// something, and runs command lines in a shell that waits at its prompt.
//
// A [Terminal] is one attachment in role share, without a size: it displaces nobody, and lives through outages as any
// client. What it knows of the terminal is exact: the output with its offsets, a screen that is drawn from it, and what
// the server's kernel says (the modes, who is in the foreground, and whether that reads). Nothing is polled from the
// server.
//
// Output, marks and titles are statements of the account's programs, and prove nothing.
package drive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/vt"
	"github.com/quicterm/quicterm/quicterm/session/gate"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Terminal is the terminal of a session that a program uses. Its methods may be called by several goroutines, except
// Send and Run, of which one is called at a time.
type Terminal struct {
	session *client.Session
	began   uint64        // where the output begins that the session has given
	done    chan struct{} // closed when the session's Run has returned
	client  *client.Client

	gate    gate.Gate // guards what follows
	screen  *screen.Screen
	hint    wire.Hint    // the last, zero before there is one
	hints   int          // how many have come
	printed time.Time    // when output came last
	offset  uint64       // behind it
	replay  bool         // what comes is from before the attach
	parser  vt.Parser    // of the output, for the listener
	watches []*watch     // what Wait looks for
	command *command     // that Run waits for, or nil
	owner   uint64       // number of the client whose terminal gives the size
	news    []news       // for News
	entered wire.Entered // the last answer to what was typed
	typists []string     // who else has typed since the last entry
	over    bool
	status  int
	err     error // why the session is over, nil for the program's end
}

// Open attaches to a session that has a terminal, and returns when its screen is known. The caller closes it.
func Open(ctx context.Context, c *client.Client, name string) (*Terminal, error) {
	return new(Terminal).open(ctx, c, name, &wire.Attach{Role: wire.RoleShare, Replay: wire.Replay{Kind: wire.ReplayScreen}})
}

// open attaches with a request, which says what is to be shown of the output from before. If it has input, or only
// watches, open does not wait for the screen.
func (t *Terminal) open(ctx context.Context, c *client.Client, name string, req *wire.Attach) (*Terminal, error) {
	t.client, t.done, t.replay, t.printed = c, make(chan struct{}), true, time.Now()
	req.Mode, req.Session, req.PTY, req.Hints = wire.ModeAttach, name, true, wire.HintsProgram
	s, err := c.Attach(ctx, req, client.Streams{
		Stdout:   t,
		Began:    t.fresh,
		Lost:     t.lost,
		Resized:  t.resized,
		Replayed: t.replayed,
		Hinted:   t.hinted,
		Joined:   t.joined,
		Left:     t.left,
		Entered:  t.answered,
		Typist:   t.typed,
	})
	if err != nil {
		return nil, err
	}
	size := s.Sizing().Size
	t.session, t.began, t.offset, t.owner = s, s.Offset(), s.Offset(), s.Sizing().Owner
	t.screen = screen.New(int(size.Cols), int(size.Rows), screen.Limits{})
	if e, ok := s.Again(); ok && t.command != nil {
		t.command.begin(e)
		t.command.again, t.command.lost = true, t.began > e.Offset
	}
	for _, other := range s.Typists() {
		t.typists = append(t.typists, other.Name)
	}
	go func() {
		defer close(t.done)
		status, err := s.Run(context.Background())
		t.gate.Lock()
		defer t.gate.Unlock()
		t.over, t.status, t.err = true, status, err
		t.gate.Changed()
	}()
	t.gate.Lock()
	err = t.awaitLocked(ctx, func() bool { return len(req.Input) > 0 || req.Role.ReadOnly() || !t.replay && t.hints > 0 })
	t.gate.Unlock()
	if err != nil && !errors.As(err, new(*ExitError)) {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close leaves the session, which continues. It waits for no answer.
func (t *Terminal) Close() {
	t.session.Part()
	<-t.done
}

// An ExitError means that the session's program has ended.
type ExitError struct{ Status int }

func (e *ExitError) Error() string {
	return fmt.Sprintf("the session's program has ended with status %d", e.Status)
}

// awaitLocked waits until done returns true. When the session is over it returns why.
func (t *Terminal) awaitLocked(ctx context.Context, done func() bool) error {
	finished := false
	if err := t.gate.Wait(ctx, func() bool {
		finished = done()
		return finished || t.over
	}); err != nil {
		return err
	}
	switch {
	case finished:
		return nil
	case t.err != nil:
		return t.err
	}
	return &ExitError{t.status}
}

// awaitFor is awaitLocked for at most a time. It reports whether done has returned true.
func (t *Terminal) awaitFor(ctx context.Context, longest time.Duration, done func() bool) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err := t.awaitLocked(limited, done)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// Write takes output of the session. It is called by the session alone.
func (t *Terminal) Write(b []byte) (int, error) {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.printed = time.Now()
	t.offset = t.session.Offset()
	t.parser.Parse(b, (*listener)(t))
	t.drawLocked(b)
	t.gate.Changed()
	return len(b), nil
}

func (t *Terminal) lost(g client.Gap) {
	t.fresh(g.Snapshot)
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.command != nil {
		t.command.lost = true
	}
}

// fresh begins a new screen, of which a snapshot has what is on it.
func (t *Terminal) fresh(snapshot []byte) {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.printed = time.Now()
	t.offset = t.session.Offset()
	cols, rows := t.screen.Size()
	t.screen = screen.New(cols, rows, screen.Limits{})
	t.drawLocked(snapshot)
	t.gate.Changed()
}

func (t *Terminal) resized(size wire.Sizing) {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.offset = t.session.Offset()
	t.screen.Resize(int(size.Cols), int(size.Rows))
	if size.Owner != t.owner && size.Client != "" {
		t.tellLocked(0, "%s has taken the size: %dx%d", size.Client, size.Cols, size.Rows)
	}
	t.owner = size.Owner
	t.gate.Changed()
}

// A news is what another client has done.
type news struct {
	joined uint64 // the client's number, if it has joined
	text   string
}

// maxNews bounds what News returns. Older news are dropped.
const maxNews = 20

func (t *Terminal) tellLocked(joined uint64, format string, args ...any) {
	t.news = append(t.news[max(len(t.news)-maxNews+1, 0):], news{joined, fmt.Sprintf(format, args...)})
}

func (t *Terminal) joined(p wire.Presence) {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.tellLocked(p.Number, "%s has joined (%v)", p.Client, p.Role)
}

func (t *Terminal) left(p wire.Presence) {
	t.gate.Lock()
	defer t.gate.Unlock()
	if i := slices.IndexFunc(t.news, func(n news) bool { return n.joined == p.Number }); i >= 0 {
		t.news = slices.Delete(t.news, i, i+1)
		return
	}
	t.tellLocked(0, "%s has left", p.Client)
}

// News returns, once, what other clients have done to the session: joined it, unless they have left again, left it, or
// taken its size.
func (t *Terminal) News() (texts []string) {
	t.gate.Lock()
	defer t.gate.Unlock()
	for _, n := range t.news {
		texts = append(texts, n.text)
	}
	t.news = nil
	return texts
}

// Name returns the session's name, which may change.
func (t *Terminal) Name() string { return t.session.Name() }

func (t *Terminal) replayed() {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.replay = false
	t.gate.Changed()
}

func (t *Terminal) hinted(h wire.Hint) {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.hint = h
	t.hints++
	t.gate.Changed()
}

func (t *Terminal) answered(e wire.Entered) {
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.entered = e; !e.Again && e.Outcome == wire.Typed {
		t.typists = nil
		t.command.begin(e)
	}
	t.gate.Changed()
}

func (t *Terminal) typed(other wire.Typist) {
	t.gate.Lock()
	defer t.gate.Unlock()
	if len(t.typists) < maxNews {
		t.typists = append(t.typists, other.Name)
		t.tellLocked(0, "%s has typed", other.Name)
	}
	t.gate.Changed()
}

// stillLocked waits until the terminal has been still for a time. The server confirms it: silence here may be an
// outage.
func (t *Terminal) stillLocked(ctx context.Context, still time.Duration) error {
	for {
		printed := t.printed
		moved := func() bool { return t.printed != printed }
		if left := still - t.session.RTT() - time.Since(printed); left > 0 { // the server is asked when it is over there
			if _, err := t.awaitFor(ctx, left, moved); err != nil {
				return err
			}
			continue
		}
		if err := t.askLocked(ctx, moved); err != nil || !moved() {
			return err
		}
	}
}

// askLocked waits until the server has told its state once more, or until is true.
func (t *Terminal) askLocked(ctx context.Context, until func() bool) error {
	hints := t.hints
	for {
		t.gate.Unlock()
		t.session.AskHint()
		t.gate.Lock()
		told, err := t.awaitFor(ctx, askAgain, func() bool { return t.hints > hints || until() })
		if told || err != nil {
			return err
		}
	}
}
