//go:build linux || darwin

package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// What each ceiling lets pass, and what breaks it.
func TestCeilings(t *testing.T) {
	for _, c := range []struct {
		name        string
		best, worst client.State
		idle        bool
		m           meter
		want        string
	}{
		{"idle", client.Live, client.Live, true, meter{packets: 8}, ""},
		{"pings without end", client.Live, client.Live, true, meter{packets: 9},
			"9 packets in 10s, and at most 8 are allowed"},
		{"dials while idle", client.Live, client.Live, true, meter{sockets: 2},
			"2 sockets in 10s, and at most 1 are allowed"},
		{"a dial while idle", client.Live, client.Live, true, meter{packets: 24, sockets: 1}, ""},
		{"dials again while idle", client.Live, client.Live, true, meter{sockets: 1, before: 1},
			"1 sockets in 10s, and at most 0 are allowed"},
		{"typing", client.Live, client.Live, false, meter{packets: 900, sockets: 4}, ""},
		{"storm of dials while live", client.Live, client.Live, false, meter{sockets: 101},
			"101 sockets in 10s, and at most 100 are allowed"},
		{"a path that is lost again and again", client.Live, client.Offline, false, meter{sockets: 102, distrusts: 16}, ""},
		{"dials without a reason", client.Live, client.Offline, false, meter{sockets: 109, distrusts: 17},
			"109 sockets in 10s, and at most 108 are allowed"},
		{"resends without end", client.Live, client.Live, false, meter{packets: 1501},
			"1501 packets in 10s, and at most 1500 are allowed"},
		{"black hole", client.Offline, client.Offline, false, meter{packets: 420, sockets: 20, connections: 20}, ""},
		{"storm of dials", client.Offline, client.Offline, false, meter{sockets: 45},
			"45 sockets in 10s, and at most 44 are allowed"},
		{"storm of pings", client.Offline, client.Offline, false, meter{packets: 301},
			"301 packets in 10s, and at most 300 are allowed"},
		{"much input waits", client.Offline, client.Offline, false, meter{packets: 780, sockets: 10, waiting: 1000}, ""},
		{"a key waits", client.Offline, client.Offline, false, meter{packets: 471, sockets: 10, waiting: 1},
			"471 packets in 10s, and at most 470 are allowed"},
		{"storm of TCP", client.Live, client.Offline, false, meter{connections: 31},
			"31 TCP connections in 10s, and at most 30 are allowed"},
	} {
		if got := exceeded(c.best, c.worst, c.idle, 1, c.m); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What is left of a world is found: a socket, a carrier, a timer.
func TestLeftOver(t *testing.T) {
	for name, leave := range map[string]func(w *world){
		"nothing": func(*world) {},
		"socket": func(w *world) {
			p := w.newActor("c", w.machines[0], nil, wire.RoleWriter).process
			p.keep(&stream{})
		},
		"carrier": func(w *world) { w.host.holders.ends[wire.SessionID{}] = map[*end]bool{{}: true} },
		"timer": func(*world) {
			var again func()
			left := 3000
			again = func() {
				if left--; left > 0 {
					time.AfterFunc(time.Second, again)
				}
			}
			again()
		},
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(1, dir)
			w.newMachine("m", netem.Config{})
			w.net.Close()
			leave(w)
			w.checkLeft()
			if found := len(w.failures) > 0; found != (name != "nothing") {
				t.Errorf("%s: found %v", name, w.failures)
			}
		})
	}
}

// A client whose carriers are accepted and end at once dials seldom, and finds the server again when that is over.
func TestCarriersThatEnd(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1, dir)
		m := w.newMachine("m", netem.Config{Delay: trip / 2}, netem.Config{Delay: trip / 2})
		s := w.newSession("s0", "shell")
		w.sessions = []*session{s}
		a := w.newActor("c0", m, s, wire.RoleWriter)
		w.startDaemon()
		w.running.Go(a.run)
		w.running.Go(w.readMeters)
		time.Sleep(10 * time.Second)
		w.carrierLife.Store(1)
		w.host.killNetwork()
		before := a.process.read().sockets
		time.Sleep(5 * time.Minute)
		if n := a.process.read().sockets - before; n > 5*60*2 {
			t.Errorf("%d dials in 5 minutes", n)
		}
		w.heal()
		w.check()
		w.close()
		if w.states["carrier ended at once"] == 0 {
			t.Error("no carrier has ended")
		}
		for _, failure := range w.failures {
			t.Error(failure)
		}
	})
}

// A change of address that a client finds untold is a reason to dial again, as is one that it is told.
func TestChangesAreCounted(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1, dir)
		m := w.newMachine("m", netem.Config{})
		defer w.net.Close()
		p := m.newProcess()
		for range 2 {
			if _, err := p.Lookup(serverAddrs[0], ""); err != nil {
				t.Fatal(err)
			}
		}
		if n := p.read().events; n != 0 {
			t.Errorf("%d changes before there is one", n)
		}
		w.net.Do(func() { m.ports[0].v4, m.ports[0].v6 = m.ports[0].v4.Next(), m.ports[0].v6.Next() })
		if _, err := p.Lookup(serverAddrs[0], ""); err != nil {
			t.Fatal(err)
		}
		if n := p.read().events; n != 1 {
			t.Errorf("%d changes, want 1", n)
		}
	})
}
