//go:build linux || darwin

package monitor

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/quota"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// findOrCreate returns the id of the session that a client asks for.
func (c *client) findOrCreate(ctx context.Context, req *privsep.Attach) (wire.SessionID, error) {
	s, uid := c.server, c.account.UID
	end, err := s.accounts.requests.Take(ctx, processes.AskerOf(ctx, uid))
	if err != nil {
		return wire.SessionID{}, err
	}
	defer end()
	if err := c.maySide(req.Side); err != nil {
		return wire.SessionID{}, err
	}
	if c.allowed.Guest() {
		e, err := s.find(ctx, uid, c.open(), c.allowed.Enrolled.Session, anyTerminal)
		if err != nil {
			return wire.SessionID{}, errorf(wire.CodeNoSession, "the session of the share is over")
		}
		return e.id, nil
	}
	if req.Side == 0 && (req.Mode == wire.ModeAttach || req.Role != wire.RoleWriter) {
		want := detached
		if req.Role != wire.RoleWriter {
			want = anyTerminal
		}
		e, err := c.findOrLost(ctx, req.Session, want)
		if err != nil {
			return wire.SessionID{}, err
		}
		if e.record {
			return e.id, c.showLost(ctx, e)
		}
		return e.id, nil
	}
	release, err := s.accounts.creating.Take(ctx, uid)
	if err != nil {
		return wire.SessionID{}, err
	}
	defer release()
	ids := s.holders.Sessions(uid)
	all, _ := s.ask(ctx, c.open(), uid, ids, &wire.Query{})
	if i := slices.IndexFunc(all, isClaimed); i >= 0 {
		return all[i].id, nil
	}
	if s.started.has(uid, c.instance) {
		return wire.SessionID{}, errorf(wire.CodeFailed, "the session is over")
	}
	// Each scope has its own names: a restricted key does not learn others by trying.
	named := func(name string) int {
		return slices.IndexFunc(all, func(e entry) bool { return e.state.Own && e.state.Name == name })
	}
	name := req.Session
	switch {
	case req.Side != 0: // nobody sees the name, except the operator
		name = req.Side.String()
	case name == "":
		for n := 1; name == "" || named(name) >= 0; n++ {
			name = strconv.Itoa(n)
		}
	case !wire.ValidName(name):
		return wire.SessionID{}, checkName(name)
	case named(name) >= 0:
		if req.Mode == wire.ModeAttachOrCreate {
			return all[named(name)].id, nil
		}
		return wire.SessionID{}, nameTaken(name)
	}
	if err := c.admit(ctx, ids, all, req.Side != 0); err != nil {
		return wire.SessionID{}, err
	}
	launch, err := c.launch(req, name)
	if err != nil {
		return wire.SessionID{}, err
	}
	if err := c.start(ctx, launch, "session started"); err != nil {
		return wire.SessionID{}, err
	}
	if req.Side == 0 {
		s.tellFollowed(uid, launch.Scope, all)
	}
	return launch.ID, nil
}

// tellFollowed tells the sessions that clients follow that one of a scope was started. It waits for none.
func (s *Sessions) tellFollowed(uid uint32, scope string, all []entry) {
	q := question{log: s.log, uid: uid, open: &wire.Open{}, request: &wire.Appeared{Scope: scope}}
	for _, e := range all {
		if e.state.Follows {
			q.ids = append(q.ids, e.id)
		}
	}
	if q.ids == nil {
		return
	}
	s.spawn(func() {
		askHolders(s.life, s, q, func(_ wire.SessionID, answer wire.Message) (done wire.Done, err error) {
			return done, answer.Decode(&done)
		})
	})
}

// checkName returns why a session cannot have a name, or nil.
func checkName(name string) error {
	if wire.ValidName(name) {
		return nil
	}
	return errorf(wire.CodeFailed,
		"%q cannot be a session's name: use up to 32 letters, digits, dots, dashes and underscores", name)
}

func nameTaken(name string) error {
	return errorf(wire.CodeFailed, "there is a session %q already: choose another name", name)
}

// A starter is the client for which a session was started.
type starter struct {
	uid      uint32
	instance wire.InstanceID
}

// started remembers for which clients sessions were started. A client sends its request again when a connection is
// lost or another one is faster, within seconds: if its program has ended already, that must not run again.
type started struct {
	mu      sync.Mutex
	clients quota.Recent[starter, bool]
}

// add remembers a client. One without an instance does not ask again.
func (s *started) add(uid uint32, instance wire.InstanceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if instance != (wire.InstanceID{}) {
		s.clients.Put(starter{uid, instance}, true)
	}
}

func (s *started) has(uid uint32, instance wire.InstanceID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, _ := s.clients.Get(starter{uid, instance})
	return known
}

// start starts a holder. The log tells what was done by it.
func (c *client) start(ctx context.Context, launch *wire.Launch, done string) error {
	s := c.server
	if err := s.holders.Start(ctx, c.account, launch); err != nil {
		return err
	}
	s.started.add(c.account.UID, c.instance)
	s.counts.started.Add(1)
	c.log.Info(done, "event", "start", "session", launch.Name, "id", launch.ID.Short())
	s.census.setKilled(launch.ID, false)
	s.follow(launch.ID, &followed{uid: c.account.UID, account: c.account.Name, name: launch.Name})
	return nil
}
