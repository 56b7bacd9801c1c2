//go:build linux || darwin

package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A fault is something that happens to a world, drawn from its seed.
type fault struct {
	number int
	kind   *kind
	at     time.Duration // since the world began
	lasts  time.Duration
	target uint64  // chooses a machine, an interface, a client or a session
	x      float64 // how bad it is, from 0 to 1
	undo   func()
}

func (f *fault) String() string {
	return fmt.Sprintf("%d: %s at %v for %v, target %d, x %.2f", f.number, f.kind.name,
		f.at.Round(time.Millisecond), f.lasts.Round(time.Millisecond), f.target%1000, f.x)
}

// A kind is a kind of fault. It either changes the links of an interface for a while, or happens.
type kind struct {
	name   string
	weight int
	most   time.Duration // that it lasts
	change func(f *fault, p *port, link *netem.Config)
	// happen does it, and may set f.undo.
	happen func(w *world, f *fault)
}

// kinds are what may happen.
var kinds = []*kind{
	{name: "loss", weight: 10, most: 2 * time.Minute, change: func(f *fault, _ *port, l *netem.Config) { l.Loss = max(l.Loss, 0.6*f.x) }},
	{name: "bursts", weight: 4, most: 2 * time.Minute, change: func(f *fault, _ *port, l *netem.Config) {
		l.Burst = netem.Burst{Mean: time.Duration(1 + f.x*float64(2*time.Second)), Share: 0.02 + f.x*0.3}
	}},
	{name: "reorder", weight: 4, most: 2 * time.Minute, change: func(f *fault, _ *port, l *netem.Config) { l.Reorder = f.x * 0.3 }},
	{name: "duplicates", weight: 4, most: 2 * time.Minute, change: func(f *fault, _ *port, l *netem.Config) { l.Duplicate = f.x * 0.5 }},
	{name: "jitter", weight: 4, most: 2 * time.Minute, change: func(f *fault, _ *port, l *netem.Config) {
		l.Jitter = 1 + time.Duration(f.x*float64(500*time.Millisecond))
	}},
	{name: "delay", weight: 4, most: 2 * time.Minute, change: func(f *fault, _ *port, l *netem.Config) {
		l.Delay += time.Duration(f.x * float64(time.Second))
	}},
	{name: "corruption", weight: 4, most: time.Minute, change: func(f *fault, p *port, _ *netem.Config) { p.corrupts = f.x * 0.3 }},
	{name: "small MTU", weight: 2, most: 2 * time.Minute, change: func(f *fault, p *port, _ *netem.Config) { p.mtu = 1200 + int(f.x*100) }},
	{name: "too small MTU", weight: 1, most: 2 * time.Minute, change: func(f *fault, p *port, _ *netem.Config) { p.mtu = 500 + int(f.x*600) }},
	{name: "bufferbloat", weight: 3, most: 2 * time.Minute, change: func(f *fault, _ *port, l *netem.Config) {
		l.Rate, l.Queue = 500_000+int(f.x*5e6), 1<<20
	}},
	{name: "1 kbit/s", weight: 1, most: time.Minute, change: func(_ *fault, _ *port, l *netem.Config) { l.Rate, l.Queue = 1000, 16<<10 }},
	{name: "dead network", weight: 6, most: 2 * time.Minute, change: func(_ *fault, _ *port, l *netem.Config) { l.Down = true }},
	{name: "UDP blocked", weight: 4, most: 10 * time.Minute, change: func(_ *fault, p *port, _ *netem.Config) { p.noUDP = true }},
	{name: "TCP blocked", weight: 4, most: time.Minute, change: func(_ *fault, p *port, _ *netem.Config) { p.noTCP = true }},
	{name: "IPv4 gone", weight: 2, most: 10 * time.Minute, change: func(_ *fault, p *port, _ *netem.Config) { p.noV4 = true }},
	{name: "interface down", weight: 6, most: 5 * time.Minute, happen: func(w *world, f *fault) {
		m, p := f.port(w)
		w.net.Do(func() { p.gone = true })
		m.hear(f)
		f.undo = func() {
			w.net.Do(func() { p.gone = false })
			m.tell(netmon.Changed)
		}
	}},
	{name: "new address", weight: 5, happen: func(w *world, f *fault) {
		m, p := f.port(w)
		number := 0
		for i, q := range m.ports {
			if q == p {
				number = i
			}
		}
		w.net.Do(func() { p.address(w.indexOf(m), number) })
		m.hear(f)
	}},
	{name: "NAT rebinding", weight: 6, happen: func(w *world, f *fault) {
		m, p := f.port(w)
		for _, process := range m.procs {
			process.mu.Lock()
			open := process.open
			var sockets []*socket
			for c := range open {
				if s, ok := c.(*socket); ok {
					sockets = append(sockets, s)
				}
			}
			process.mu.Unlock()
			for _, s := range sockets {
				s.rebind(p)
			}
		}
	}},
	{name: "partition", weight: 1, most: time.Hour, happen: func(w *world, f *fault) {
		m, _ := f.port(w)
		w.net.Do(func() {
			for _, p := range m.ports {
				p.faults[f] = true
				p.settle()
			}
		})
		f.undo = func() {
			w.net.Do(func() {
				for _, p := range m.ports {
					delete(p.faults, f)
					p.settle()
				}
			})
			m.hear(f)
		}
	}, change: func(_ *fault, _ *port, l *netem.Config) { l.Down = true }},
	{name: "client stopped", weight: 3, most: 10 * time.Minute, happen: func(w *world, f *fault) {
		if a := f.actor(w); a != nil {
			a.process.stop()
			f.undo = a.process.resume
		}
	}},
	{name: "client killed", weight: 3, happen: func(w *world, f *fault) {
		a := f.actor(w)
		if a == nil || a.current() == nil || !a.session.pty() {
			return
		}
		a.kill()
		w.comeAgain(f, a, a.role)
	}},
	{name: "takeover", weight: 3, happen: func(w *world, f *fault) {
		if a := f.actor(w); a != nil && a.session.pty() && a.session.isCreated() {
			w.takeOver(f, a)
		}
	}},
	{name: "two takeovers at once", weight: 1, happen: func(w *world, f *fault) {
		if a := f.actor(w); a != nil && a.session.pty() && a.session.isCreated() {
			w.takeOver(f, a)
			w.takeOver(f, a)
		}
	}},
	{name: "resizes", weight: 3, happen: func(w *world, f *fault) {
		a := f.actor(w)
		if a == nil || a.current() == nil || !a.session.pty() {
			return
		}
		rng := rand.New(rand.NewPCG(f.target, 3))
		for range 1 + int(f.x*20) {
			size := wire.Size{Cols: uint16(10 + rng.IntN(190)), Rows: uint16(3 + rng.IntN(60))}
			if s := a.current(); s != nil && rng.IntN(4) > 0 {
				s.Resize(size)
			} else if s != nil && !a.role.ReadOnly() {
				s.TakeSize(size)
			}
			time.Sleep(time.Duration(rng.IntN(int(100 * time.Millisecond))))
		}
	}},
	{name: "skip", weight: 1, happen: func(w *world, f *fault) {
		if a := f.actor(w); a != nil && a.session.pty() && a.current() != nil && !a.whole {
			a.current().Skip()
		}
	}},
	{name: "slow reader", weight: 3, most: 5 * time.Minute, happen: func(w *world, f *fault) {
		if a := f.actor(w); a != nil {
			a.slowDown(true)
			f.undo = func() { a.slowDown(false) }
		}
	}},
	{name: "no descriptors", weight: 2, most: time.Minute, happen: func(w *world, f *fault) {
		if a := f.actor(w); a != nil {
			a.process.setScarce(true)
			f.undo = func() { a.process.setScarce(false) }
		}
	}},
	{name: "packets replayed", weight: 3, happen: func(w *world, f *fault) {
		if a := f.actor(w); a != nil {
			a.process.replay()
		}
	}},
	{name: "daemon killed", weight: 3, most: time.Minute, happen: func(w *world, f *fault) {
		w.host.kill()
		f.undo = w.startDaemon
	}},
	{name: "daemon restarted", weight: 2, happen: func(w *world, f *fault) {
		w.host.stop()
		w.startDaemon()
	}},
	{name: "holder killed", weight: 1, happen: func(w *world, f *fault) {
		s := w.sessions[f.target%uint64(len(w.sessions))]
		s.mu.Lock()
		created := s.created && !s.ended
		s.lost = s.lost || created
		s.mu.Unlock()
		if created {
			w.checkLost(s)
			w.host.holders.killNamed(s.name)
		}
	}},
	{name: "bits changed in the relay", weight: 2, most: 30 * time.Second, happen: func(w *world, f *fault) {
		w.spoils.Add(1 + int64(f.x*20_000))
		f.undo = func() { w.spoils.Store(0) }
	}},
}

func (p *process) setScarce(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scarce = on
}

// port returns the interface that a fault is for.
func (f *fault) port(w *world) (*machine, *port) {
	m := w.machines[f.target%uint64(len(w.machines))]
	return m, m.ports[f.target/1000%uint64(len(m.ports))]
}

// actor returns the client that a fault is for, or nil if it does not run any more.
func (f *fault) actor(w *world) *actor {
	actors := w.everyone()
	a := actors[f.target%uint64(len(actors))]
	if !a.present() {
		return nil
	}
	return a
}

// hear tells the clients of a machine what has happened, unless the system does not notice it.
func (m *machine) hear(f *fault) {
	if f.target/7%2 == 0 {
		m.tell(netmon.Changed)
	}
}

// begin lets a fault happen.
func (w *world) begin(f *fault) {
	w.count(f.kind.name)
	w.trace("fault %v", f)
	if f.kind.happen != nil {
		f.kind.happen(w, f)
		return
	}
	m, p := f.port(w)
	w.net.Do(func() {
		p.faults[f] = true
		p.settle()
	})
	f.undo = func() {
		w.net.Do(func() {
			delete(p.faults, f)
			p.settle()
		})
		m.hear(f)
	}
}

// undo ends a fault.
func (w *world) undo(f *fault) {
	if f.undo != nil {
		w.trace("fault %d ends", f.number)
		f.undo()
		f.undo = nil
	}
}

// takeOver attaches a new writer to the session of a client, while those type that it displaces.
func (w *world) takeOver(f *fault, a *actor) {
	for _, b := range w.everyone() {
		if b.session == a.session {
			b.mu.Lock()
			b.hurry = time.Now().Add(10 * time.Second)
			b.mu.Unlock()
		}
	}
	w.comeAgain(f, a, wire.RoleWriter)
}

// comeAgain attaches a new client to the session of one, on another machine.
func (w *world) comeAgain(f *fault, a *actor, role wire.Role) {
	m := w.machines[f.target/11%uint64(len(w.machines))]
	b := w.newActor(fmt.Sprintf("c%d", len(w.everyone())), m, a.session, role)
	w.running.Go(b.run)
}

// startDaemon starts the daemon, unless one runs.
func (w *world) startDaemon() {
	if w.host.isUp() {
		return
	}
	if err := w.host.start(); err != nil {
		w.failf("the daemon does not start: %v", err)
	}
}

func (w *world) indexOf(m *machine) int {
	for i, other := range w.machines {
		if other == m {
			return i
		}
	}
	return 0
}
