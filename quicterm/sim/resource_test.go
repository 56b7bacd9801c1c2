//go:build linux || darwin

package main

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// resourceKinds are what may happen to clocks, processors and limits, and what a relay does that lies. They are drawn
// from a source of their own, so that they change no other fault of a seed.
var resourceKinds = []*kind{
	{name: "client's clock jumps", weight: 2, happen: func(w *world, f *fault) {
		m, _ := f.port(w)
		m.tell(netmon.Woke) // all that a client asks for the time of day
	}},
	{name: "server's clock jumps", weight: 1, happen: func(w *world, f *fault) {
		w.host.stop()
		if err := w.host.shiftClock(time.Duration((f.x - 0.5) * float64(10*24*time.Hour))); err != nil {
			w.failf("the keys of tickets are not there: %v", err)
		}
		w.startDaemon()
	}},
	{name: "starved processor", weight: 5, most: 2 * time.Minute, happen: func(w *world, f *fault) {
		a := f.actor(w)
		if a == nil {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.process.starve(ctx, rand.New(rand.NewPCG(f.target, 4)), f.x)
		}()
		f.undo = func() { cancel(); <-ended }
	}},
	{name: "resize storm", weight: 2, happen: func(w *world, f *fault) {
		a := f.actor(w)
		if a == nil || !a.session.pty() {
			return
		}
		rng := rand.New(rand.NewPCG(f.target, 5))
		for range 100 + int(f.x*400) {
			for _, b := range w.everyone() {
				if s := b.current(); s != nil && b.session == a.session {
					s.Resize(wire.Size{Cols: uint16(1 + rng.IntN(300)), Rows: uint16(1 + rng.IntN(100))})
				}
			}
			if rng.IntN(10) == 0 {
				time.Sleep(time.Duration(rng.IntN(int(10 * time.Millisecond))))
			}
		}
	}},
	{name: "strangers", weight: 2, most: time.Minute, happen: func(w *world, f *fault) {
		m, p := f.port(w)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			m.strange(ctx, p, rand.New(rand.NewPCG(f.target, 6)), 20+int(f.x*100))
		}()
		f.undo = func() { cancel(); <-ended }
	}},
	{name: "relay lies", weight: 3, most: 30 * time.Second, happen: func(w *world, f *fault) {
		w.lies.Store(1 + int64(f.x*f.x*100_000))
		f.undo = func() { w.lies.Store(0) }
	}},
	{name: "bit changed in a ring", weight: 4, happen: func(w *world, f *fault) {
		if s := w.sessions[f.target%uint64(len(w.sessions))]; s.pty() && s.lives() {
			w.changeRing(s, rand.New(rand.NewPCG(f.target, 7)))
		}
	}},
	{name: "looked at", weight: 6, happen: func(w *world, _ *fault) { w.look() }},
}

// shiftClock makes what the daemon has written appear older, or made in the future: its clock jumps while it is down.
func (h *host) shiftClock(by time.Duration) error {
	const size, times = 8 + 32, 8 // of a key in the file, and of when it was made
	file := filepath.Join(h.disk, "ticket_keys")
	b, err := os.ReadFile(file)
	for i := 0; i+size <= len(b); i += size {
		made := b[i : i+times]
		binary.BigEndian.PutUint64(made, binary.BigEndian.Uint64(made)-uint64(int64(by.Seconds())))
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// starve lets the process run only at times. What it sends and what it prints waits, and so does what it would read.
func (p *process) starve(ctx context.Context, rng *rand.Rand, x float64) {
	for ctx.Err() == nil {
		waits := time.Duration(rng.ExpFloat64() * (0.1 + x) * float64(100*time.Millisecond))
		if rng.IntN(20) == 0 {
			waits = time.Duration(rng.IntN(int(10 * time.Second)))
		}
		p.mu.Lock()
		runs := p.stopped == nil && !p.killed
		if runs {
			p.stopped, p.starved = make(chan struct{}), true
		}
		p.mu.Unlock()
		pause(ctx, waits)
		p.mu.Lock()
		if p.starved && p.stopped != nil {
			close(p.stopped)
			p.stopped = nil
		}
		p.starved = false
		p.mu.Unlock()
		pause(ctx, time.Duration(rng.ExpFloat64()*float64(100*time.Millisecond)))
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// strange lets strangers knock, begin handshakes and connect from behind an interface, and say nothing more.
func (m *machine) strange(ctx context.Context, p *port, rng *rand.Rand, many int) {
	w := m.world
	source := serverAddrs[0].Addr()
	w.net.Do(func() { source = p.v4 })
	var open []net.Conn
	for range many {
		if ctx.Err() != nil {
			break
		}
		switch rng.IntN(2) {
		case 0:
			if heard := m.anyHeard(rng); heard != nil {
				socket := w.net.Listen(netip.AddrPortFrom(source, 0))
				socket.WriteTo(heard.data, net.UDPAddrFromAddrPort(serverAddrs[0]))
				socket.Close()
			}
		case 1:
			tried, cancel := context.WithTimeout(ctx, time.Second)
			if c, err := w.net.DialStream(tried, source, serverAddrs[0]); err == nil {
				c.Write(noise(rng, rng.IntN(200)))
				open = append(open, c)
			}
			cancel()
		}
		pause(ctx, time.Duration(rng.IntN(int(200*time.Millisecond))))
	}
	<-ctx.Done()
	for _, c := range open {
		c.Close()
	}
}

// anyHeard returns a packet that began a connection of a client of the machine, or nil.
func (m *machine) anyHeard(rng *rand.Rand) *received {
	if len(m.procs) == 0 {
		return nil
	}
	p := m.procs[rng.IntN(len(m.procs))]
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.heard) == 0 {
		return nil
	}
	return &p.heard[rng.IntN(len(p.heard))]
}
