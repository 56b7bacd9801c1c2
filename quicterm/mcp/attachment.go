package mcp

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/drive"
)

// idleTime is how long an attachment is kept that no call uses: a model that thinks, or a person who answers it, takes
// some minutes.
const idleTime = 5 * time.Minute

// A place is a session as calls name it.
type place struct{ host, session string }

// An attachment is kept for the calls about a session.
type attachment struct {
	opened   chan struct{} // closed when terminal or err is known
	terminal *drive.Terminal
	name     string        // of the session then
	turn     chan struct{} // holds a token while a call types
	end      context.CancelFunc

	// The server's mu guards these.
	err   error       // why it is not opened, or the client that took the session over, which a call is to be told
	calls int         // that use it
	idle  *time.Timer // ends it if none does
}

// attached calls f with the attachment at a session, and returns what other clients have done there. If f types, other
// calls that do wait.
func (s *server) attached(
	ctx context.Context, in session, types bool, f func(*drive.Terminal) error,
) (n notices, err error) {
	name, err := s.allowed(in.host)
	if err != nil {
		return n, err
	}
	at := place{name, in.Session}
	a := s.take(at)
	defer s.release(a)
	select {
	case <-a.opened:
	case <-ctx.Done():
		return n, context.Cause(ctx)
	}
	if err := s.failed(at, a, nil); err != nil {
		return n, err
	}
	if types {
		select {
		case a.turn <- struct{}{}:
			defer func() { <-a.turn }()
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
	}
	if err := f(a.terminal); err != nil {
		return n, s.failed(at, a, err)
	}
	n.Notices = a.terminal.News()
	return n, nil
}

// failed returns why an attachment does not serve a call, given the error of the call, or nil. The next call is to get
// another one.
func (s *server) failed(at place, a *attachment, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.err == nil && !errors.As(err, new(*client.DisplacedError)) {
		return err
	}
	s.forgetLocked(at, a)
	return cmp.Or(a.err, err)
}

func (s *server) take(at place) *attachment {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.kept[at]
	if a != nil && a.renamed() { // another session may have the name
		a.end()
		a = nil
	}
	if a == nil {
		ctx, end := context.WithCancel(s.ctx)
		a = &attachment{opened: make(chan struct{}), turn: make(chan struct{}, 1), end: end}
		a.idle = time.AfterFunc(idleTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if a.calls == 0 {
				s.forgetLocked(at, a)
			}
		})
		s.kept[at] = a
		s.running.Go(func() { s.keep(ctx, at, a) })
	}
	a.calls++
	return a
}

func (s *server) release(a *attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.calls--; a.calls > 0 {
		return
	}
	select {
	case <-a.opened:
		a.idle.Reset(idleTime)
	default: // nobody waits for it any more
		a.idle.Reset(0)
	}
}

// forget ends the attachment at a session, if there is one.
func (s *server) forget(in session) {
	name, _ := s.allowed(in.host)
	at := place{name, in.Session}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.kept[at]; a != nil {
		s.forgetLocked(at, a)
	}
}

// forgetLocked ends an attachment, and leaves none for later calls.
func (s *server) forgetLocked(at place, a *attachment) {
	if s.kept[at] == a {
		delete(s.kept, at)
	}
	a.idle.Stop()
	a.end()
}

// renamed reports whether the session has another name than when calls came to it by its name.
func (a *attachment) renamed() bool {
	select {
	case <-a.opened:
		return a.terminal != nil && a.terminal.Name() != a.name
	default:
		return false
	}
}

// keep opens an attachment, and closes it when the session or ctx has ended.
func (s *server) keep(ctx context.Context, at place, a *attachment) {
	var over error
	err := s.Reach(ctx, at.host, func(ctx context.Context, access *reach.Access) error {
		t, err := drive.Open(ctx, access.Client, at.session)
		if err != nil {
			return err
		}
		defer t.Close()
		a.terminal, a.name = t, t.Name()
		close(a.opened)
		_, over = t.Wait(ctx, drive.Condition{Kind: drive.Exit})
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.terminal == nil {
		a.err = err
		close(a.opened)
	}
	if errors.As(over, new(*client.DisplacedError)) {
		a.err = over
	} else {
		s.forgetLocked(at, a)
	}
}
