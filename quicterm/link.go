package quicterm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// goneAfter is how long a server may say that it does not know the session
// before it is believed to be gone: a holder whose socket was removed makes it
// again within a minute.
const goneAfter = 130 * time.Second

// A linkKeeper does what a [migrate.Link] decides for a session.
type linkKeeper struct {
	session  *Session
	link     *migrate.Link
	events   chan migrate.Event
	carriers map[migrate.ID]*linkCarrier
	dials    map[migrate.ID]context.CancelFunc
	waiting  time.Time
	wg       sync.WaitGroup
}

type linkCarrier struct {
	quic     *carrier.QUIC
	id       session.CarrierID // guarded by the session's mutex
	packets  uint64            // received when last looked at
	resuming *resuming         // nil for the first
}

// answered reports whether the server has taken the carrier for the session.
func (c *linkCarrier) answered() bool { return c.resuming == nil || c.resuming.answered.Load() }

// dialed is the event that an attempt has led to a carrier.
type dialed struct {
	id    migrate.ID
	quic  *carrier.QUIC
	ready bool
}

// keepLink keeps a session connected until the context ends.
func (s *Session) keepLink(ctx context.Context) {
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
		}),
		events:   make(chan migrate.Event),
		carriers: make(map[migrate.ID]*linkCarrier),
		dials:    make(map[migrate.ID]context.CancelFunc),
	}
	k.run(ctx)
}

func (k *linkKeeper) run(ctx context.Context) {
	defer k.wg.Wait()
	defer func() {
		for _, c := range k.carriers {
			c.quic.Close()
		}
	}()
	// The link gives its own attempts numbers from 1 on.
	k.add(ctx, dialed{id: 0, quic: k.session.first, ready: true})
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		k.look(ctx)
		timer.Reset(time.Until(k.link.Deadline()))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			k.look(ctx) // what came before the deadline counts
			k.handle(ctx, nil)
		case <-k.session.poke:
		case e := <-k.events:
			switch e := e.(type) {
			case dialed:
				k.add(ctx, e)
			case migrate.Down:
				delete(k.carriers, e.ID)
				delete(k.dials, e.ID)
				k.handle(ctx, e)
			}
		}
	}
}

// post gives an event to the loop.
func (k *linkKeeper) post(ctx context.Context, e migrate.Event) {
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
			k.handle(ctx, migrate.Heard{ID: id, RTT: stats.SmoothedRTT})
		}
	}
	s := k.session
	s.mu.Lock()
	waiting, active := s.peer.Waiting(), s.active
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

// report tells the person's side when the state of the link has changed.
func (k *linkKeeper) report() {
	state, since := k.link.State()
	now := Link{State: state, Since: since, Attempts: k.link.Attempts()}
	s := k.session
	s.mu.Lock()
	changed := s.link != now
	s.link = now
	s.mu.Unlock()
	if changed && s.streams.Changed != nil {
		s.streams.Changed(now)
	}
}

func (k *linkKeeper) handle(ctx context.Context, e migrate.Event) {
	for _, a := range k.link.Handle(time.Now(), e) {
		switch a := a.(type) {
		case migrate.Dial:
			k.dial(ctx, a.ID)
		case migrate.Close:
			if cancel := k.dials[a.ID]; cancel != nil {
				cancel()
				delete(k.dials, a.ID)
			}
			if c := k.carriers[a.ID]; c != nil {
				c.quic.Close()
			}
		case migrate.Ping:
			k.ping(a.ID)
		}
	}
}

func (k *linkKeeper) ping(id migrate.ID) {
	s := k.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := k.carriers[id]; c != nil {
		s.peer.Ping(c.id)
		s.pump.Wake()
	}
}

// dial starts an attempt to get a carrier.
func (k *linkKeeper) dial(ctx context.Context, id migrate.ID) {
	dialCtx, cancel := context.WithCancel(ctx)
	k.dials[id] = cancel
	k.wg.Go(func() {
		defer cancel()
		quic, err := k.session.client.dial(dialCtx)
		if err == nil {
			err = k.session.resume(quic)
		}
		if err != nil {
			k.session.log.Debug("attempt failed", "number", id, "error", err)
			k.post(ctx, migrate.Down{ID: id})
			return
		}
		k.post(ctx, dialed{id: id, quic: quic})
	})
}

// resume says, first on a new carrier, which session it is for.
func (s *Session) resume(quic *carrier.QUIC) error {
	r := &wire.Resume{UID: s.attached.UID, ID: s.attached.ID, Instance: s.instance}
	s.mu.Lock()
	s.resumes++
	r.N = s.resumes
	s.mu.Unlock()
	r.Proof = auth.Proof(s.attached.Secret, r.Statement())
	if err := wire.Send(quic, r); err != nil {
		quic.Close()
		return err
	}
	return nil
}

// add has a carrier move the session's frames.
func (k *linkKeeper) add(ctx context.Context, d dialed) {
	s := k.session
	if _, wanted := k.dials[d.id]; !wanted && !d.ready {
		d.quic.Close() // given up meanwhile
		return
	}
	delete(k.dials, d.id)
	c := &linkCarrier{quic: d.quic}
	k.carriers[d.id] = c
	var lanes carrier.Carrier = d.quic
	if !d.ready {
		c.resuming = &resuming{QUIC: d.quic}
		lanes = c.resuming
	}
	k.wg.Go(func() {
		err := s.pump.Run(lanes, true, func(id session.CarrierID) { c.id = id })
		s.log.Debug("carrier ended", "number", d.id, "reason", err)
		s.checkEnd(err)
		k.post(ctx, migrate.Down{ID: d.id})
	})
}

// A resuming is a carrier on which the server's answer to a resume comes before
// the frames.
type resuming struct {
	*carrier.QUIC
	answered atomic.Bool
}

// A refusedError means that the server does not know the session, or not that it
// is ours.
type refusedError struct{ boot string }

func (e *refusedError) Error() string { return "resume denied" }

func (r *resuming) Read(b []byte) (int, error) {
	if !r.answered.Load() {
		m, err := wire.Read(r.QUIC, wire.MaxMessage)
		if err != nil {
			return 0, err
		}
		if err := resumeAnswer(m); err != nil {
			return 0, err
		}
		r.answered.Store(true)
	}
	return r.QUIC.Read(b)
}

func resumeAnswer(m wire.Message) error {
	switch m.Type {
	case wire.TypeDenied:
		var denied wire.Denied
		if err := m.Decode(&denied); err != nil {
			return err
		}
		return &refusedError{denied.Boot}
	case wire.TypeError:
		var e wire.Error
		if err := m.Decode(&e); err != nil {
			return err
		}
		if e.Code == wire.CodeDisplaced {
			return &DisplacedError{By: e.Text}
		}
		return &ServerError{e.Code, e.Text}
	}
	return m.Decode(&wire.Resumed{})
}

// checkEnd takes note that a carrier ended, and of what that says of the
// session.
func (s *Session) checkEnd(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
	var displaced *DisplacedError
	if errors.As(err, &displaced) {
		s.endLocked(displaced)
	}
	var refused *refusedError
	if !errors.As(err, &refused) {
		return
	}
	if s.refused.IsZero() {
		s.refused = time.Now()
	}
	switch {
	case refused.boot != s.attached.Boot:
		s.endLocked(fmt.Errorf("%w: the server was started anew", ErrGone))
	case time.Since(s.refused) > goneAfter:
		s.endLocked(fmt.Errorf("%w: the server does not know it any more", ErrGone))
	}
}
