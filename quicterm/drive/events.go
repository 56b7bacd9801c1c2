package drive

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen/marks"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An Event is something that has happened to a session. What its programs tell (title, cwd, began, ended, bell,
// notification) proves nothing. All texts are printable.
type Event struct {
	Session string    `json:"session"`          // its name then
	ID      string    `json:"id"`               // of the session
	Number  uint64    `json:"number,omitempty"` // counts the events of the session; 0 for lost and unknown, which Follow tells itself
	Time    time.Time `json:"time"`             // by the clock of the server
	Kind    EventKind `json:"event"`

	Missing uint64 `json:"missing,omitempty"` // events before this one that the server does not keep any more
	Next    uint64 `json:"next,omitempty"`    // where the output ended, about: an offset for Tail

	Program string   `json:"program,omitempty"` // in the foreground, of a terminal that is still
	Client  string   `json:"client,omitempty"`
	Role    string   `json:"role,omitempty"`
	By      string   `json:"by,omitempty"`
	Cols    uint16   `json:"cols,omitempty"`
	Rows    uint16   `json:"rows,omitempty"`
	Text    string   `json:"text,omitempty"`    // a title or a notification, or why the session has ended or is not followed
	CWD     string   `json:"cwd,omitempty"`     // the path that the shell tells
	Host    string   `json:"cwdhost,omitempty"` // and the host
	Status  *uint8   `json:"status,omitempty"`  // exit status
	Seconds *float64 `json:"seconds,omitempty"` // that a command took
	Count   uint64   `json:"count,omitempty"`   // of bells, or of events that were left out
	Port    uint16   `json:"port,omitempty"`
}

// An EventKind is what has happened.
type EventKind string

// The kinds of events.
const (
	EventAttached     EventKind = "attached"     // Client has come in a Role, or is back after a long time
	EventDetached     EventKind = "detached"     // Client has left, or is away for 10 s
	EventDisplaced    EventKind = "displaced"    // another client has taken the session over from Client
	EventResized      EventKind = "resized"      // the terminal has Cols and Rows, those of Client's
	EventTitle        EventKind = "title"        // the terminal has the title Text
	EventCWD          EventKind = "cwd"          // the shell is in another directory
	EventBegan        EventKind = "began"        // the shell has begun a command
	EventEnded        EventKind = "ended"        // the command has ended with Status, after Seconds
	EventBell         EventKind = "bell"         // the bell has rung Count times
	EventNotification EventKind = "notification" // a program has sent Text
	EventPrompt       EventKind = "prompt"       // the session's shell waits at its prompt
	EventWaits        EventKind = "waits"        // another program waits for input
	EventSilent       EventKind = "silent"       // nothing was printed for 10 s, and no program waits for input
	EventExited       EventKind = "exited"       // the session's program has ended with Status
	EventPortOpened   EventKind = "port-opened"  // a process of the session listens at Port
	EventPortClosed   EventKind = "port-closed"  // and no longer
	EventOmitted      EventKind = "omitted"      // programs have told so much at once that Count events were left out
	EventLost         EventKind = "lost"         // the session is gone, and what became of it is not known
	EventUnknown      EventKind = "unknown"      // the session cannot be followed, for now: Text says why
)

var eventKinds = map[wire.EventKind]EventKind{
	wire.EventAttached: EventAttached, wire.EventDetached: EventDetached, wire.EventDisplaced: EventDisplaced,
	wire.EventResized: EventResized, wire.EventTitle: EventTitle, wire.EventDirectory: EventCWD,
	wire.EventBegan: EventBegan, wire.EventEnded: EventEnded, wire.EventBell: EventBell,
	wire.EventNotification: EventNotification, wire.EventPrompt: EventPrompt, wire.EventWaits: EventWaits,
	wire.EventSilent: EventSilent, wire.EventExited: EventExited, wire.EventOmitted: EventOmitted,
	wire.EventPortOpened: EventPortOpened, wire.EventPortClosed: EventPortClosed,
}

// Last reports whether it is the last event of its session.
func (e *Event) Last() bool { return e.Kind == EventExited || e.Kind == EventLost }

const (
	// listInterval is the time between two looks for new sessions of a host where none is followed: each logs in anew.
	// Where one is, that tells of others, except of those of another daemon that is too old.
	listInterval = 30 * time.Second
	seldom       = 20 * listInterval

	// maxLogins bounds the logins at once: the server serves 4 requests of an account at once.
	maxLogins = 3
)

// A Login calls f with a client that can log in to a server once. It returns when f has, with its error or why there is
// no client, and may call it again after an error that says that the server was not reached.
type Login func(ctx context.Context, f func(context.Context, *client.Client) error) error

// Follow calls f with the events of the sessions of the account on a server, one at a time, also of those that are
// started meanwhile. It needs no more than the right to watch; of a session without a terminal there is only its end.
//
// The events of a session have numbers from 1 on, without gaps except those that Missing tells: through any outage, and,
// by since, also after an end of Follow, none is missing and none comes twice. since has the last event of each
// session that was followed before, by its ID, also of those that have ended. Without it, Follow begins with what
// happens from now on. While f runs, the events wait, at last at the server, which keeps 10000 of a session.
//
// Follow ends with the error of the first login, with the first error of f, or at the end of ctx. It tries all later
// logins again until they succeed.
func Follow(ctx context.Context, login Login, since map[string]Event, f func(Event) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	w := &follower{
		login: login, stop: stop, tell: f, asked: make(chan struct{}, 1), left: make(chan struct{}, 1), logins: make(chan struct{}, maxLogins),
		sessions: make(map[string]*followed),
	}
	defer w.running.Wait()
	defer stop(nil)
	for id, last := range since {
		w.sessions[id] = &followed{last: last, over: last.Last()}
	}
	first := true
	for {
		listed := w.list(ctx, first && since == nil)
		if listed != nil && first {
			return listed
		}
		first = false
		if err := w.await(ctx, listed == nil); err != nil {
			return err
		}
	}
}

// await waits until it is time to look for new sessions, behind a look that has succeeded or not.
func (w *follower) await(ctx context.Context, listed bool) error {
	for began := time.Now(); ; {
		interval := seldom
		if !listed || !w.follows() {
			interval = listInterval
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.left: // there may be no session any more that tells of others
		case <-w.asked:
			return nil
		case <-time.After(time.Until(began.Add(interval))):
			return nil
		}
	}
}

// A follower is a call of Follow.
type follower struct {
	login  Login
	stop   context.CancelCauseFunc
	asked  chan struct{} // look for new sessions; buffers one
	left   chan struct{} // a session is not followed any more; buffers one
	logins chan struct{} // has a token for each login

	running sync.WaitGroup // of sessions

	telling sync.Mutex // held while tell runs
	tell    func(Event) error

	mu       sync.Mutex
	sessions map[string]*followed // by id
}

// A followed is a session. The mutex guards runs and over.
type followed struct {
	last    Event // that was told; for the session's goroutine alone, while it runs, as the next three
	missing uint64
	fromNow bool // it begins with what happens from now on
	unknown bool // it was told that it is not followed
	runs    bool
	over    bool // nothing more is told of it
}

// ask makes Follow look for new sessions.
func (w *follower) ask() { wake(w.asked) }

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// follows reports whether all sessions that are there are followed, and there is one.
func (w *follower) follows() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	running := 0
	for _, s := range w.sessions {
		if s.runs {
			running++
		} else if !s.over {
			return false
		}
	}
	return running > 0
}

// list looks for sessions that are not followed yet, and follows them, from now on or from their beginning.
func (w *follower) list(ctx context.Context, fromNow bool) error {
	var infos []wire.Info
	more := 0
	err := w.loggedIn(ctx, func(ctx context.Context, c *client.Client, done func()) (err error) {
		infos, more, err = c.List(ctx)
		return err
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := maps.Clone(w.sessions)
	for _, i := range slices.Backward(infos) {
		id := i.ID.String()
		s := w.sessions[id]
		if i.Phase == wire.PhaseLost {
			continue // as if it was not there
		}
		delete(gone, id)
		if s == nil {
			s = &followed{fromNow: fromNow}
			w.sessions[id] = s
		}
		if s.runs || s.over {
			continue
		}
		s.last.Session, s.last.ID = i.Name, id
		s.runs = true
		w.running.Go(func() { w.follow(ctx, s) })
	}
	for id, s := range gone {
		if s.over {
			delete(w.sessions, id)
		} else if !s.runs && more == 0 {
			s.over = true
			w.running.Go(func() {
				w.give(s, Event{Kind: EventLost, Time: time.Now(), Text: "it has ended while nobody followed it"})
			})
		}
	}
	return nil
}

// loggedIn calls f with a client, when others have logged in. f may call done when it has, and returns at the end.
func (w *follower) loggedIn(ctx context.Context, f func(ctx context.Context, c *client.Client, done func()) error) error {
	select {
	case w.logins <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	done := sync.OnceFunc(func() { <-w.logins })
	defer done()
	return w.login(ctx, func(ctx context.Context, c *client.Client) error { return f(ctx, c, done) })
}

// follow follows a session until it is over, or must be attached to anew.
func (w *follower) follow(ctx context.Context, s *followed) {
	replay := wire.Replay{Kind: wire.ReplayFrom, From: s.last.Number + 1}
	if s.fromNow {
		replay = wire.Replay{Kind: wire.ReplayNone}
	}
	var over error // why the session was left
	err := w.loggedIn(ctx, func(ctx context.Context, c *client.Client, done func()) error {
		var session *client.Session
		session, err := c.Attach(ctx, &wire.Attach{
			Mode: wire.ModeAttach, Session: s.last.ID, Role: wire.RoleWatch, Replay: replay, Events: true,
		}, client.Streams{
			Happened: func(number uint64, e wire.Event) {
				if kind := eventKinds[e.Kind]; kind != "" {
					s.last.Session = session.Name()
					w.give(s, eventOf(number, kind, &e))
				}
			},
			Lost:     func(g client.Gap) { s.missing += g.To - g.From + 1 },
			Appeared: w.ask,
		})
		if err != nil {
			return err
		}
		done()
		if s.fromNow {
			s.last.Number, s.fromNow = session.First()-1, false
		} else {
			s.missing += session.First() - min(session.First(), replay.From)
		}
		s.unknown = false
		_, over = session.Run(ctx)
		return nil
	})
	err = cmp.Or(err, over)
	refusal := new(wire.Error)
	switch {
	case ctx.Err() != nil, s.last.Last(), err == nil, transient(err):
	case errors.As(err, &refusal) && (refusal.Code == wire.CodeNoSession || refusal.Code == wire.CodeLost),
		errors.Is(err, client.ErrGone):
		w.give(s, Event{Kind: EventLost, Time: time.Now()})
	case !s.unknown:
		s.unknown = true
		w.give(s, Event{Kind: EventUnknown, Time: time.Now(), Text: wire.Printable(err.Error(), wire.MaxEventText)})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.runs = false
	s.over = s.last.Last()
	wake(w.left)
}

// transient reports whether a login may succeed later, without anybody doing something for that.
func transient(err error) bool {
	return errors.As(err, new(*client.UnreachableError)) || errors.As(err, new(*client.TunnelError)) ||
		errors.As(err, new(*client.BrokenOffError)) || errors.Is(err, client.ErrBusy)
}

func (w *follower) give(s *followed, e Event) {
	e.Session, e.ID, e.Missing = s.last.Session, s.last.ID, s.missing
	w.telling.Lock()
	defer w.telling.Unlock()
	if err := w.tell(e); err != nil {
		w.stop(err)
		w.tell = func(Event) error { return err } // what was under way
		return
	}
	if e.Number == 0 {
		e.Number = s.last.Number
	}
	s.last, s.missing = e, 0
}

func eventOf(number uint64, kind EventKind, e *wire.Event) Event {
	out := Event{
		Number: number, Time: time.UnixMilli(e.Time), Kind: kind, Next: e.Output, Client: e.Client, By: e.By, Program: e.Program,
		Cols: e.Cols, Rows: e.Rows, Text: e.Text, Status: e.Status, Count: e.Count, Port: e.Port,
	}
	switch e.Kind {
	case wire.EventAttached, wire.EventDetached:
		out.Role = e.Role.String()
	case wire.EventDirectory:
		out.Text = ""
		out.Host, out.CWD = marks.Path(e.Text)
		out.Host, out.CWD = wire.Printable(out.Host, wire.MaxClient), wire.Printable(out.CWD, wire.MaxEventText)
	case wire.EventEnded:
		seconds := time.Duration(e.Took * int64(time.Millisecond)).Seconds()
		out.Seconds = &seconds
	}
	return out
}
