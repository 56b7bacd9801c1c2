package drive

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Kind is what a [Condition] is about.
type Kind string

// The kinds.
const (
	Text    Kind = "text"    // a line of the terminal matches Pattern
	NoText  Kind = "no-text" // no line of the screen matches Pattern
	Stable  Kind = "stable"  // nothing has been printed for the time For
	Prompt  Kind = "prompt"  // the session's shell waits at its prompt
	Reading Kind = "reading" // the program in the foreground waits for input
	Exit    Kind = "exit"    // the session's program has ended
	Bell    Kind = "bell"    // the bell has rung
	Notify  Kind = "notify"  // a program has sent a notification: OSC 9, 99 or 777
)

// A Condition is something to wait for.
type Condition struct {
	Kind    Kind
	Pattern *regexp.Regexp
	For     time.Duration
}

// A Match says which condition holds.
type Match struct {
	Kind   Kind   `json:"condition"`
	Text   string `json:"match,omitempty"`  // what has matched, or the text of a notification
	Row    int    `json:"row"`              // of the screen, from 0, of a text; otherwise that of the cursor
	Next   uint64 `json:"next"`             // where the output ended then: an offset for Tail
	Status *int   `json:"status,omitempty"` // with Exit

	// Typists are the clients that have typed, other than by Send and Run, since the last of these.
	Typists []string `json:"typed_by,omitempty"`
}

// A watch is a condition that Wait waits for.
type watch struct {
	Condition
	found *Match
}

// Wait attaches to a session and waits as [Terminal.Wait] does, for what its screen shows and for all that is printed
// after that, or, with an offset since that is not nil, for what has been printed since then. If it waits for Exit alone,
// the session needs no terminal.
func Wait(ctx context.Context, c *client.Client, name string, since *uint64, conditions ...Condition) (Match, error) {
	replay := wire.Replay{Kind: wire.ReplayScreen}
	if since != nil {
		replay = wire.Replay{Kind: wire.ReplayFrom, From: *since}
	}
	watches := watchesFor(conditions)
	req := &wire.Attach{Replay: replay, Role: wire.RoleShare}
	if !slices.ContainsFunc(conditions, func(c Condition) bool { return c.Kind != Exit }) { // of a pipe too
		req = &wire.Attach{Role: wire.RoleWatch, Whole: true, Replay: wire.Replay{Kind: wire.ReplayNone}}
	}
	t, err := (&Terminal{watches: watches}).open(ctx, c, name, req)
	if err != nil {
		return Match{}, err
	}
	defer t.Close()
	t.gate.Lock()
	defer t.gate.Unlock()
	return t.waitLocked(ctx, watches)
}

// Wait returns when one of the conditions holds: at once, if one does already. Lines that scroll by while it waits
// count for Text. It ends with an [ExitError] when the session's program does, unless Exit is one of them.
func (t *Terminal) Wait(ctx context.Context, conditions ...Condition) (Match, error) {
	watches := watchesFor(conditions)
	t.gate.Lock()
	defer t.gate.Unlock()
	t.watches = append(t.watches, watches...)
	return t.waitLocked(ctx, watches)
}

func watchesFor(conditions []Condition) (watches []*watch) {
	for _, c := range conditions {
		watches = append(watches, &watch{Condition: c})
	}
	return watches
}

// waitLocked waits until one of the watches has found what it looks for, and removes them.
func (t *Terminal) waitLocked(ctx context.Context, watches []*watch) (Match, error) {
	defer func() {
		t.watches = slices.DeleteFunc(t.watches, func(w *watch) bool { return slices.Contains(watches, w) })
	}()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for _, w := range watches {
		if w.Kind == Stable {
			go t.watchStill(ctx, w)
		}
	}
	t.lookLocked()
	var found *Match
	err := t.awaitLocked(ctx, func() bool {
		for _, w := range watches {
			t.lookAtStateLocked(w)
			if found == nil {
				found = w.found
			}
		}
		return found != nil
	})
	if err != nil {
		return Match{}, err
	}
	found.Typists = t.typists
	return *found, nil
}

// watchStill finds a watch when the terminal has been still for its time.
func (t *Terminal) watchStill(ctx context.Context, w *watch) {
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.stillLocked(ctx, w.For) == nil {
		t.foundLocked(w, "", -1)
		t.gate.Changed()
	}
}

// foundLocked records what a watch has found, in a row or, below 0, in that of the cursor.
func (t *Terminal) foundLocked(w *watch, text string, row int) {
	if w.found != nil {
		return
	}
	if row < 0 {
		_, row = t.screen.Cursor()
	}
	w.found = &Match{Kind: w.Kind, Text: text, Row: row, Next: t.offset}
}

// lookAtStateLocked looks whether a watch holds that is about more than the screen.
func (t *Terminal) lookAtStateLocked(w *watch) {
	switch w.Kind {
	case Prompt:
		if t.hint.AtPrompt() {
			t.foundLocked(w, "", -1)
		}
	case Reading:
		if t.hint.Reading {
			t.foundLocked(w, "", -1)
		}
	case Exit:
		if t.over && t.err == nil && w.found == nil {
			t.foundLocked(w, "", -1)
			status := t.status
			w.found.Status = &status
		}
	}
}

// drawLocked draws output. Text is looked for in each line, before that scrolls away.
func (t *Terminal) drawLocked(b []byte) {
	if !slices.ContainsFunc(t.watches, func(w *watch) bool { return w.Kind == Text && w.found == nil }) {
		t.screen.Write(b)
	} else {
		for len(b) > 0 {
			n := bytes.IndexByte(b, '\n') + 1
			if n == 0 {
				n = len(b)
			}
			_, before := t.screen.Cursor()
			t.screen.Write(b[:n])
			b = b[n:]
			if len(b) > 0 {
				t.lookAtTextLocked(before-1, before+1)
			}
		}
	}
	t.lookLocked()
}

func (t *Terminal) lookLocked() {
	_, rows := t.screen.Size()
	t.lookAtTextLocked(0, rows)
	for _, w := range t.watches {
		if w.Kind == NoText && w.found == nil && !t.replay { // a snapshot is drawn piece by piece
			if _, _, ok := t.findLocked(w.Pattern, 0, rows); !ok {
				t.foundLocked(w, "", -1)
			}
		}
	}
}

func (t *Terminal) lookAtTextLocked(from, to int) {
	for _, w := range t.watches {
		if w.Kind != Text || w.found != nil {
			continue
		}
		if text, row, ok := t.findLocked(w.Pattern, from, to); ok {
			t.foundLocked(w, text, row)
		}
	}
}

// findLocked finds a pattern in the lines that have rows of the screen between from and to. A line that is wrapped is
// one.
func (t *Terminal) findLocked(pattern *regexp.Regexp, from, to int) (text string, row int, ok bool) {
	_, rows := t.screen.Size()
	from, to = max(from, 0), min(to, rows)
	for from > 0 && t.screen.Row(from).Wrapped() {
		from--
	}
	for y := from; y < to; {
		first := y
		var line strings.Builder
		line.WriteString(t.screen.Row(y).Text())
		for y++; y < rows && t.screen.Row(y).Wrapped(); y++ {
			line.WriteString(t.screen.Row(y).Text())
		}
		if at := pattern.FindStringIndex(line.String()); at != nil {
			return line.String()[at[0]:at[1]], first, true
		}
	}
	return "", 0, false
}
