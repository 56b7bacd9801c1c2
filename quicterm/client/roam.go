package client

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/session"
)

// A roamer keeps a session connected: it does what a [migrate.Manager] decides. Its loop runs
// at the manager's deadline, on events, and when the session's alarm wakes it.
type roamer struct {
	session    *Session
	manager    *migrate.Manager
	events     chan any // migrate.Down, migrate.Answered, knockFailed, netmon.Event, dialed, ended or resolved
	carriers   map[migrate.ID]*roamerCarrier
	dials      map[migrate.ID]context.CancelFunc
	unacked    time.Time      // as reported to the manager
	bulk       bool           // the same: a backlog lasts
	host       netip.AddrPort // at which the session was last reached; not valid if only by a tunnel
	candidates candidates
	knocker    *knocker
	wg         sync.WaitGroup
}

func newRoamer(s *Session) *roamer {
	cfg := s.client.cfg
	return &roamer{
		session: s,
		manager: migrate.New(migrate.Config{
			KeepaliveIdle: cfg.KeepaliveIdle,
			Paths:         paths[cfg.Paths],
			Prefer:        cfg.Prefer,
			Avoid:         cfg.Avoid,
			RenewEarly:    rand.N(migrate.MaxRenewEarly),
		}),
		events:     make(chan any),
		carriers:   make(map[migrate.ID]*roamerCarrier),
		dials:      make(map[migrate.ID]context.CancelFunc),
		candidates: candidates{client: s.client},
	}
}

// paths are the names that the settings have for how many paths there are.
var paths = map[string]migrate.Paths{
	"failover":  migrate.Failover,
	"standby":   migrate.Standby,
	"redundant": migrate.Redundant,
	"aggregate": migrate.Aggregate,
}

// run keeps the session connected until the context ends. It closes all carriers and waits for all goroutines.
func (r *roamer) run(ctx context.Context) {
	s := r.session
	r.knocker = r.newKnocker(ctx)
	defer func() {
		for _, c := range r.carriers {
			c.conn.Close()
		}
		r.knocker.stop()
		r.knocker.wg.Wait()
		r.wg.Wait()
		s.gate.Lock()
		defer s.gate.Unlock()
		s.alarm.stop()
	}()
	first := migrate.Candidate{Transport: s.first.transport}
	if a, ok := s.first.Carrier.(carrier.Addressed); ok && first.Transport != migrate.SSH {
		r.host = a.RemoteAddr()
		first = r.candidates.start(first.Transport, r.host)
	}
	r.carry(ctx, migrate.Dial{}, &roamerCarrier{conn: s.first.Carrier, to: first}, s.first.Carrier)
	r.handle(ctx, migrate.Started{Candidate: first})
	r.refresh(ctx, true)
	r.resolve(ctx)
	r.wg.Go(func() {
		err := s.client.network.Watch(ctx, r.candidates.bestAddr, func(e netmon.Event) { r.post(ctx, e) })
		if ctx.Err() == nil {
			s.log.Debug("changes of the network are not reported", "error", err)
		}
	})
	r.wg.Go(func() { s.announce(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		r.look(ctx)
		var bulk <-chan time.Time
		if r.bulk {
			bulk = time.After(migrate.BulkInterval)
		}
		var deadline <-chan time.Time
		if d := r.manager.Deadline(); !d.IsZero() {
			timer.Reset(time.Until(d))
			deadline = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-deadline:
			r.look(ctx) // packets that arrived before the deadline count
			r.refresh(ctx, false)
			r.handle(ctx, nil)
		case <-s.alarm.roamer:
		case <-bulk:
		case answer := <-s.statusRequests:
			r.look(ctx)
			answer <- r.status()
		case e := <-r.events:
			r.look(ctx) // packets that arrived before the event say nothing of the time after it
			r.handleEvent(ctx, e)
		}
	}
}

func (r *roamer) handleEvent(ctx context.Context, e any) {
	switch e := e.(type) {
	case netmon.Event:
		r.session.log.Debug("the network may have changed", "event", e)
		r.refresh(ctx, true)
		if e == netmon.Woke {
			r.handle(ctx, migrate.Woke{})
		}
		r.resolve(ctx)
	case resolved:
		if r.candidates.endResolve(e, r.host, r.session.log) {
			r.refresh(ctx, true)
		}
	case dialed:
		r.add(ctx, e)
	case ended:
		to := r.carriers[e.id].to
		over := r.session.carrierEnded(to.Transport, e.reason, responderAt(to.Remote, r.host, r.candidates.named))
		delete(r.carriers, e.id)
		if !over {
			r.handle(ctx, migrate.Down{ID: e.id})
		}
	case migrate.Down:
		delete(r.dials, e.ID)
		r.handle(ctx, e)
	case migrate.Answered:
		r.handle(ctx, e)
	case knockFailed:
		r.knocker.failed(e)
	}
}

// post gives an event to the loop.
func (r *roamer) post(ctx context.Context, e any) {
	select {
	case r.events <- e:
	case <-ctx.Done():
		if d, ok := e.(dialed); ok {
			d.conn.Close()
		}
	}
}

// look reports to the manager what has changed since the last look.
func (r *roamer) look(ctx context.Context) {
	s := r.session
	s.gate.Lock()
	late := s.alarm.late(time.Now())
	s.gate.Unlock()
	if late {
		r.starved(ctx)
	}
	// By a smaller RTT, an ack that the same packets brought would be overdue: it is told after the ack.
	var faster []migrate.Heard
	for _, id := range slices.Sorted(maps.Keys(r.carriers)) {
		c := r.carriers[id]
		stats := c.stats()
		if c.accepted() && stats.PacketsReceived != c.packets {
			c.packets = stats.PacketsReceived
			if c.to.Remote.IsValid() {
				r.host = c.to.Remote
			}
			heard := migrate.Heard{ID: id, RTT: r.rtt(c, stats), At: stats.LastReceived}
			if heard.RTT < c.rtt {
				faster = append(faster, heard)
				heard.RTT = 0
			}
			c.rtt = max(c.rtt, heard.RTT)
			r.handle(ctx, heard)
		}
	}
	s.gate.Lock()
	unacked := s.unackedLocked()
	traffic := s.alarm.look(time.Now(), !unacked.IsZero())
	limited := s.limitedLocked(time.Now())
	s.gate.Unlock()
	if !traffic.IsZero() {
		r.handle(ctx, migrate.Traffic{})
	}
	if unacked != r.unacked {
		r.unacked = unacked
		r.handle(ctx, migrate.Unacked{Since: unacked})
	}
	for _, heard := range faster {
		if c := r.carriers[heard.ID]; c != nil {
			c.rtt = heard.RTT
		}
		r.handle(ctx, heard)
	}
	if limited || r.bulk {
		r.bulk = limited
		r.handle(ctx, migrate.Bulk{Limited: limited})
	}
	r.report()
}

// refresh reports the candidates to the manager, if they have changed or it is to know in any
// case. While the link is live, it does so only if an event is the reason.
func (r *roamer) refresh(ctx context.Context, always bool) {
	if len(r.candidates.addrs) == 0 { // the session began over a tunnel
		r.resolve(ctx)
	}
	if state, _ := r.manager.State(); state == migrate.Live && !always {
		return
	}
	changed := r.candidates.refresh(r.session.log)
	if changed {
		r.knocker.stop()
		r.session.log.Debug("candidates have changed", "candidates", r.candidates.list)
	}
	if changed || always {
		r.handle(ctx, migrate.NetworkChanged{Candidates: slices.Clone(r.candidates.list)})
	}
	if state, _ := r.manager.State(); state != migrate.Live {
		r.resolve(ctx)
	}
}

// resolve resolves the server's name, unless that was done recently.
func (r *roamer) resolve(ctx context.Context) {
	if !r.candidates.mayResolve() {
		return
	}
	resolve := r.candidates.startResolve()
	r.wg.Go(func() { r.post(ctx, resolve(ctx)) })
}

// report tells the session the state of the link, and when its frames are to wake the loop.
func (r *roamer) report() {
	state, since := r.manager.State()
	if state == migrate.Live {
		r.knocker.stop()
	}
	s := r.session
	s.gate.Lock()
	defer s.gate.Unlock()
	s.alarm.set(r.manager.Steady(), r.manager.AckTimeout())
	link := LinkState{State: State(state), Since: since, Attempts: r.manager.Attempts(), Backlog: s.endpoint.PeerBacklog()}
	if s.link != link {
		s.link = link
		s.gate.Changed() // to who says goodbye
		wake(s.linkChanged)
	}
}

// handle gives an event to the manager, and does what that decides.
func (r *roamer) handle(ctx context.Context, e migrate.Event) {
	if isLate(time.Now(), r.manager.Deadline()) {
		r.starved(ctx)
	}
	r.do(ctx, r.manager.Handle(time.Now(), e))
}

// starved tells the manager that this client did not run when it should have.
func (r *roamer) starved(ctx context.Context) {
	r.session.log.Debug("this client did not run for a while")
	r.do(ctx, r.manager.Handle(time.Now(), migrate.Starved{}))
}

func (r *roamer) do(ctx context.Context, actions []migrate.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case migrate.Dial:
			r.dial(ctx, a)
		case migrate.Close:
			r.close(a.ID)
		case migrate.Abandon:
			if c := r.carriers[a.ID]; c != nil {
				if conn, ok := c.conn.(interface{ Abandon() }); ok {
					conn.Abandon()
				}
			}
			r.close(a.ID)
		case migrate.Activate:
			r.change(a.ID, func(e *session.Endpoint, id session.CarrierID) { e.Activate(time.Now(), id) })
		case migrate.StandBy:
			r.change(a.ID, func(e *session.Endpoint, id session.CarrierID) { e.StandBy(time.Now(), id) })
		case migrate.Knock:
			r.knocker.knock(a.Candidate)
		case migrate.Ping:
			r.change(a.ID, func(e *session.Endpoint, id session.CarrierID) {
				if !a.Short || !r.session.driver.Keepalive(id) {
					e.Ping(id)
				}
			})
		}
	}
}
