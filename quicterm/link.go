package quicterm

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/session"
)

// A linkKeeper does what a [migrate.Link] decides for a session.
type linkKeeper struct {
	session  *Session
	link     *migrate.Link
	events   chan any // migrate.Event, netmon.Event, dialed, ended or resolved
	carriers map[migrate.ID]*linkCarrier
	dials    map[migrate.ID]context.CancelFunc
	waiting  time.Time
	home     netip.AddrPort // at which the session was reached last
	changed  chan struct{}  // wakes who tells of changes
	atlas    atlas
	wg       sync.WaitGroup
}

type linkCarrier struct {
	quic     *carrier.QUIC
	remote   netip.AddrPort
	id       session.CarrierID // guarded by the session's mutex
	packets  uint64            // received when last looked at
	resuming *resuming         // nil for the first
}

// answered reports whether the server has taken the carrier for the session.
func (c *linkCarrier) answered() bool { return c.resuming == nil || c.resuming.answered.Load() }

// dialed is the event that an attempt has led to a carrier.
type dialed struct {
	migrate.Dial
	quic *carrier.QUIC
}

// ended is the event that a carrier has ended.
type ended struct {
	id     migrate.ID
	reason error
}

// keepLink keeps a session connected until the context ends.
func (s *Session) keepLink(ctx context.Context) {
	defer close(s.unlinked)
	settings := s.client.cfg.Settings
	var backoff []time.Duration
	for _, d := range settings.ReconnectBackoff {
		backoff = append(backoff, d.Duration)
	}
	k := &linkKeeper{
		session: s,
		link: migrate.NewLink(migrate.Config{
			KeepaliveInterval: settings.KeepaliveInterval.Duration,
			KeepaliveIdle:     settings.KeepaliveIdle.Duration,
			StallLimit:        settings.KeepaliveInterval.Duration * time.Duration(settings.KeepaliveTimeoutMultiplier),
			Backoff:           backoff,
			Paths:             paths[settings.Paths],
			Prefer:            settings.Interfaces.Prefer,
			Avoid:             settings.Interfaces.Avoid,
		}),
		events:   make(chan any),
		carriers: make(map[migrate.ID]*linkCarrier),
		dials:    make(map[migrate.ID]context.CancelFunc),
		changed:  make(chan struct{}, 1),
		atlas:    atlas{client: s.client},
	}
	k.run(ctx)
}

// paths are the names that the settings have for how many paths there are.
var paths = map[string]migrate.Paths{
	"failover":  migrate.Failover,
	"standby":   migrate.Standby,
	"redundant": migrate.Redundant,
}

func (k *linkKeeper) run(ctx context.Context) {
	defer k.wg.Wait()
	defer func() {
		for _, c := range k.carriers {
			c.quic.Close()
		}
	}()
	first := k.session.first
	remote := first.Conn().RemoteAddr().(*net.UDPAddr).AddrPort()
	k.home = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	k.carry(ctx, 0, &linkCarrier{quic: first, remote: k.home}, first, false)
	k.atlas.remotes = []netip.AddrPort{k.home}
	k.atlas.named = k.atlas.remotes
	k.handle(ctx, migrate.Begun{Way: k.atlas.begin()})
	k.survey(ctx, true)
	k.resolve(ctx)
	k.wg.Go(func() {
		err := k.session.client.network.Watch(ctx, k.atlas.remote, func(e netmon.Event) { k.post(ctx, e) })
		if ctx.Err() == nil {
			k.session.log.Debug("changes of the network are not seen", "error", err)
		}
	})
	if k.session.streams.Changed != nil {
		k.wg.Go(func() { k.announce(ctx) })
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		k.look(ctx)
		var due <-chan time.Time
		if deadline := k.link.Deadline(); !deadline.IsZero() {
			timer.Reset(time.Until(deadline))
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
			k.look(ctx) // what came before the deadline counts
			k.survey(ctx, false)
			k.handle(ctx, nil)
		case <-k.session.poke:
		case answer := <-k.session.asked:
			answer <- k.status()
		case e := <-k.events:
			k.look(ctx) // what came before the event says nothing of what is now
			switch e := e.(type) {
			case netmon.Event:
				k.session.log.Debug("the network may have changed", "event", e)
				k.survey(ctx, true)
				if e == netmon.Woke {
					k.handle(ctx, migrate.Woke{})
				}
				k.resolve(ctx)
			case resolved:
				if k.atlas.take(e, k.home, k.session.log) {
					k.survey(ctx, true)
				}
			case dialed:
				k.add(ctx, e)
			case ended:
				k.session.checkEnd(e.reason, k.origin(k.carriers[e.id]))
				delete(k.carriers, e.id)
				k.handle(ctx, migrate.Down{ID: e.id})
			case migrate.Down:
				delete(k.dials, e.ID)
				k.handle(ctx, e)
			}
		}
	}
}

// post gives an event to the loop.
func (k *linkKeeper) post(ctx context.Context, e any) {
	select {
	case k.events <- e:
	case <-ctx.Done():
		if d, ok := e.(dialed); ok {
			d.quic.Close()
		}
	}
}

// look tells the link what has changed since the last look.
func (k *linkKeeper) look(ctx context.Context) {
	for id, c := range k.carriers {
		stats := c.quic.Conn().ConnectionStats()
		if c.answered() && stats.PacketsReceived != c.packets {
			c.packets = stats.PacketsReceived
			k.home = c.remote
			k.handle(ctx, migrate.Heard{ID: id, RTT: stats.SmoothedRTT})
		}
	}
	s := k.session
	s.mu.Lock()
	waiting, active := s.peer.Waiting(), s.active
	if s.peer.Full() {
		waiting = time.Time{}
	}
	s.active = time.Time{}
	s.mu.Unlock()
	if !active.IsZero() {
		k.handle(ctx, migrate.Traffic{})
	}
	if waiting != k.waiting {
		k.waiting = waiting
		k.handle(ctx, migrate.Waiting{Since: waiting})
	}
	k.report()
}

// survey tells the link which ways there are, if they have changed or it is to
// know in any case. While all is well, only an event makes them worth a look.
func (k *linkKeeper) survey(ctx context.Context, always bool) {
	if state, _ := k.link.State(); state == migrate.Live && !always {
		return
	}
	changed := k.atlas.survey(k.session.log)
	if changed {
		k.session.log.Debug("ways to the server", "ways", k.atlas.ways)
	}
	if changed || always {
		k.handle(ctx, migrate.Network{Ways: slices.Clone(k.atlas.ways)})
	}
	if state, _ := k.link.State(); state != migrate.Live {
		k.resolve(ctx)
	}
}

// resolve has the server's name resolved, unless that was done of late.
func (k *linkKeeper) resolve(ctx context.Context) {
	if !k.atlas.mayResolve() {
		return
	}
	k.wg.Go(func() { k.post(ctx, k.atlas.resolve(ctx)) })
}

// report takes note of the state of the link.
func (k *linkKeeper) report() {
	state, since := k.link.State()
	s := k.session
	s.mu.Lock()
	defer s.mu.Unlock()
	now := Link{State: state, Since: since, Attempts: k.link.Attempts(), Backlog: s.peer.Backlog()}
	if s.link != now {
		s.link = now
		wake(k.changed)
	}
}

// announce tells the person's side of changes of the link. That may take long, as
// with a terminal whose output is stopped.
func (k *linkKeeper) announce(ctx context.Context) {
	s := k.session
	for {
		select {
		case <-k.changed:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		now := s.link
		s.mu.Unlock()
		s.streams.Changed(now)
	}
}

func (k *linkKeeper) handle(ctx context.Context, e migrate.Event) {
	for _, a := range k.link.Handle(time.Now(), e) {
		switch a := a.(type) {
		case migrate.Dial:
			k.dial(ctx, a)
		case migrate.Close:
			if cancel := k.dials[a.ID]; cancel != nil {
				cancel()
				delete(k.dials, a.ID)
			}
			if c := k.carriers[a.ID]; c != nil {
				c.quic.Close()
			}
		case migrate.Activate:
			k.with(a.ID, func(p *session.Peer, id session.CarrierID) { p.Activate(time.Now(), id) })
		case migrate.Ping:
			k.with(a.ID, func(p *session.Peer, id session.CarrierID) { p.Ping(id) })
		}
	}
}

// with changes something about a carrier in the peer.
func (k *linkKeeper) with(id migrate.ID, f func(*session.Peer, session.CarrierID)) {
	s := k.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := k.carriers[id]; c != nil {
		f(s.peer, c.id)
		s.pump.Wake()
	}
}

// dial starts an attempt to get a carrier.
func (k *linkKeeper) dial(ctx context.Context, a migrate.Dial) {
	k.session.log.Debug("attempt", "number", a.ID, "way", a.Way)
	dialCtx, cancel := context.WithCancel(ctx)
	k.dials[a.ID] = cancel
	k.wg.Go(func() {
		defer cancel()
		quic, err := k.session.client.dialWay(dialCtx, a.Way, k.session.first.Datagrams())
		if err == nil {
			err = k.session.resume(quic)
		}
		if err != nil {
			k.session.log.Debug("attempt failed", "number", a.ID, "error", err)
			k.post(ctx, migrate.Down{ID: a.ID})
			return
		}
		k.post(ctx, dialed{a, quic})
	})
}

// add has a carrier that was dialed move the session's frames.
func (k *linkKeeper) add(ctx context.Context, d dialed) {
	if _, wanted := k.dials[d.ID]; !wanted {
		d.quic.Close() // given up meanwhile
		return
	}
	delete(k.dials, d.ID)
	r := &resuming{QUIC: d.quic}
	k.carry(ctx, d.ID, &linkCarrier{quic: d.quic, remote: d.Way.Remote, resuming: r}, r, d.StandBy)
}

// origin returns where a carrier's answers come from.
func (k *linkKeeper) origin(c *linkCarrier) origin {
	switch {
	case c.remote == k.home:
		return ours
	case slices.Contains(k.atlas.named, k.home):
		return another
	}
	return unknown
}

func (k *linkKeeper) carry(ctx context.Context, number migrate.ID, c *linkCarrier, lanes carrier.Carrier, standBy bool) {
	s := k.session
	k.carriers[number] = c
	k.wg.Go(func() {
		err := s.pump.Run(lanes, true, func(id session.CarrierID) {
			c.id = id
			if standBy {
				s.peer.StandBy(id)
			}
		})
		s.log.Debug("carrier ended", "number", number, "reason", err)
		k.post(ctx, ended{number, err})
	})
}
