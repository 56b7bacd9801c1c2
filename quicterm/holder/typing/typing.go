// Package typing decides what programs type into a session's terminal, and when: one entry at a time, each once. It is
// pure. Its owner looks at the terminal, types what a [Step] says, and tells the clients.
package typing

import (
	"bytes"
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxKnown is how many entries are remembered, the last ones: who repeats one does so soon.
	maxKnown = 64

	// maxTypists bounds how many clients are remembered that have typed since the last entry.
	maxTypists = 16

	// maxLine is how many bytes of a line the kernel takes that edits lines itself, with the end of the line (N_TTY of
	// Linux).
	maxLine = 4096

	// settled is how long a terminal must be still until what a program has drawn counts as all of it, such as the
	// characters that were pasted into it: a program draws within some milliseconds.
	settled = 50 * time.Millisecond
)

// A Look is what is known of the terminal at a time since which nothing has happened.
type Look struct {
	Terminal wire.TerminalFlags
	Context  uint16    // of the program in the foreground, as in a [wire.Hint]
	Prompt   bool      // the session's shell waits at its prompt
	Reading  bool      // the program in the foreground waits for input
	Taken    bool      // it has read all input
	Printed  time.Time // when output came last
	Offset   uint64    // of the output to come

	// Connected reports whether the client with a number is there.
	Connected func(client uint64) bool

	// Screen returns what the terminal is drawn to be, or false if something has happened meanwhile. It may take a while, in
	// which clients leave.
	Screen func() (Screen, bool)
}

// A Screen is what a [Look] takes longer for.
type Screen struct {
	Pastes   bool // the program takes pastes
	Marks    bool // the shell's own marks say that it waits for a command
	Terminal wire.TerminalFlags
}

// An Item is an entry of a client.
type Item struct {
	Client wire.Typist
	Frame  uint64 // of the client's log
	wire.Entry

	until   time.Time // when it is too late; zero for never
	after   string    // whose entry it has waited for
	typed   bool      // from here on it needs no client
	rest    []byte    // that is typed when the terminal has settled
	wroteAt time.Time
}

// A Step is what is to be done next.
type Step struct {
	Entered *wire.Entered // to be told first, or nil
	Write   []byte        // then typed
	Handled *Item         // then handled, unless it is nil
}

// A Queue is what the programs of a session want to type.
type Queue struct {
	waiting []*Item // in the order in which they came
	current *Item   // that is typed, or read; or nil
	runner  wire.Typist
	known   []known // oldest first
	typists []wire.Typist
}

type known struct {
	id      wire.EntryID
	entered wire.Entered
}

// Add adds an entry.
func (q *Queue) Add(now time.Time, i *Item) {
	if i.Within > 0 {
		i.until = now.Add(i.Within)
	}
	switch last := q.last(); {
	case last != nil && last.Client != i.Client:
		i.after = last.Client.Name
	case i.Run && q.runner != (wire.Typist{}) && q.runner != i.Client:
		i.after = q.runner.Name
	}
	q.waiting = append(q.waiting, i)
}

func (q *Queue) last() *Item {
	if n := len(q.waiting); n > 0 {
		return q.waiting[n-1]
	}
	return q.current
}

// Active reports whether the queue waits for something that a Look shows.
func (q *Queue) Active() bool {
	return q.current != nil || len(q.waiting) > 0 || q.runner != (wire.Typist{})
}

// Unattended reports whether the queue waits for something also if no client is there that is told of it: a client that
// comes back begins to look again.
func (q *Queue) Unattended() bool {
	return q.current != nil && q.current.typed || slices.ContainsFunc(q.waiting, func(i *Item) bool { return !i.until.IsZero() })
}

// Release lets others run command lines while that of a client runs, which is away.
func (q *Queue) Release(number uint64) {
	if q.runner.Client == number {
		q.runner = wire.Typist{}
	}
}

// Leave forgets a client that is gone, and its entries of which nothing is typed.
func (q *Queue) Leave(number uint64) {
	q.Release(number)
	gone := func(i *Item) bool { return i.Client.Client == number && !i.typed }
	q.waiting = slices.DeleteFunc(q.waiting, gone)
	if q.current != nil && gone(q.current) {
		q.current = nil
	}
}

// Revoke forgets a client that may not type any more, also what is left of an entry of which a part is typed.
func (q *Queue) Revoke(number uint64) {
	q.Leave(number)
	if q.current != nil && q.current.Client.Client == number {
		q.current = nil
	}
}

// Typed records that a client has typed by itself. It reports whether that is to be told.
func (q *Queue) Typed(c wire.Typist) bool {
	if len(q.known) == 0 || len(q.typists) == maxTypists || slices.Contains(q.typists, c) {
		return false
	}
	q.typists = append(q.typists, c)
	return true
}

// Known returns what has come of an entry that was typed, if that is remembered.
func (q *Queue) Known(id wire.EntryID) (e wire.Entered, ok bool) {
	n := slices.IndexFunc(q.known, func(k known) bool { return k.id == id })
	if n < 0 {
		return e, false
	}
	return q.known[n].entered, true
}

// Typists returns the clients that have typed by themselves since the last entry.
func (q *Queue) Typists() []wire.Typist { return slices.Clone(q.typists) }

// Next returns the next step, with a new look after each, or false if there is nothing to do before another look.
func (q *Queue) Next(now time.Time, l Look) (s Step, ok bool) {
	if l.Prompt && l.Taken && q.current == nil {
		q.runner = wire.Typist{}
	}
	if q.current == nil {
		n := slices.IndexFunc(q.waiting, func(i *Item) bool {
			others := i.Run && q.runner != (wire.Typist{}) && q.runner != i.Client
			_, known := q.Known(i.ID)
			return i.late(now) || l.Connected(i.Client.Client) && (known || !others && (!i.Wait || l.Prompt))
		})
		if n < 0 {
			return s, false
		}
		q.current = q.waiting[n]
		q.waiting = slices.Delete(q.waiting, n, n+1)
	}
	i := q.current
	switch {
	case !i.typed:
		return q.begin(now, l, i)
	case len(i.rest) == 0 && l.Taken:
		q.current = nil
		return q.Next(now, l)
	case i.late(now):
		q.current = nil
		if len(i.rest) > 0 {
			s.Handled = i
		}
		return s, true
	case len(i.rest) > 0 && l.Taken && now.Sub(l.Printed) >= settled && now.Sub(i.wroteAt) >= settled:
		s = Step{Write: i.rest, Handled: i}
		i.rest = nil
		return s, true
	}
	return s, false
}

// late reports whether the time for an entry is over.
func (i *Item) late(now time.Time) bool { return !i.until.IsZero() && !now.Before(i.until) }

// begin begins to type an entry, or says why not.
func (q *Queue) begin(now time.Time, l Look, i *Item) (s Step, ok bool) {
	answer := wire.Entered{Client: i.Client.Client, Frame: i.Frame, After: i.after, Offset: l.Offset}
	end := func() (Step, bool) {
		q.current = nil
		return Step{Entered: &answer, Handled: i}, true
	}
	if before, ok := q.Known(i.ID); ok {
		answer.Outcome, answer.Marked, answer.Offset = before.Outcome, before.Marked, before.Offset
		answer.Again, answer.Bytes = true, before.Bytes
		return end()
	}
	if i.late(now) {
		q.current = nil
		return Step{Handled: i}, true
	}
	screen, ok := l.Screen()
	switch {
	case q.current != i: // its client has left meanwhile
		return s, false
	case !ok:
		q.current, q.waiting = nil, slices.Insert(q.waiting, 0, i)
		return s, false
	}
	var first []byte
	switch {
	case i.Run && !l.Prompt:
		answer.Outcome = busy(l)
		return end()
	case i.Run && bytes.ContainsAny(i.Text, "\r\n") && !screen.Pastes:
		answer.Outcome = wire.NoPaste
		return end()
	case i.Run:
		if first = i.Text; !screen.Marks {
			answer.Marked, first = true, marked(i.Text, i.ID, l.Context)
		}
		first = append(paste(first, screen.Pastes), '\r')
	default:
		if first = i.Text; !i.Secret {
			first = paste(first, screen.Pastes)
		}
		if i.rest = slices.Clone(i.Keys); i.Enter {
			i.rest = append(i.rest, '\r')
		}
		if screen.Terminal&wire.Canonical != 0 || len(first) == 0 {
			first, i.rest = append(slices.Clone(first), i.rest...), nil
		}
	}
	if i.Secret && !screen.Terminal.Secret() {
		answer.Outcome = wire.NotSecret
		return end()
	}
	if screen.Terminal&wire.Canonical != 0 && longest(first) >= maxLine {
		answer.Outcome = wire.LongLine
		return end()
	}
	if i.typed, i.wroteAt = true, now; i.Run {
		q.runner = i.Client
	}
	if !i.Secret { // all clients get the answer
		answer.Bytes = uint32(len(first) + len(i.rest))
	}
	q.known = append(q.known[max(len(q.known)-maxKnown+1, 0):], known{i.ID, answer})
	q.typists = nil
	s = Step{Entered: &answer, Write: first}
	if len(i.rest) == 0 {
		s.Handled = i
	}
	return s, true
}

// busy says why no shell waits at its prompt.
func busy(l Look) wire.Outcome {
	switch {
	case l.Terminal&wire.Shell != 0:
		return wire.ShellBusy
	case l.Reading:
		return wire.OtherReads
	}
	return wire.OtherBusy
}

func longest(text []byte) (n int) {
	for line := range bytes.SplitSeq(text, []byte{'\r'}) {
		n = max(n, len(line))
	}
	return n
}
