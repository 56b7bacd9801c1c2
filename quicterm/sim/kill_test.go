//go:build linux || darwin

package main

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// killIn plays a world of one machine, one session and some clients, in which kill happens.
func killIn(t *testing.T, roles []wire.Role, kill func(w *world, s *session, actors []*actor)) {
	t.Helper()
	dir := t.TempDir()
	var failures []string
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1, dir)
		w.net.RouteStreams(func(from, to netip.AddrPort) *netem.Link { return nil }) // or kernels would answer for the dead
		m := w.newMachine("m0", netem.Config{Delay: 20 * time.Millisecond})
		s := w.newSession("s0", "shell")
		w.sessions = []*session{s}
		w.startDaemon()
		for i, role := range roles {
			a := w.newActor(string(rune('a'+i)), m, s, role)
			w.running.Go(a.run)
			time.Sleep(10 * time.Second)
		}
		kill(w, s, w.everyone())
		w.heal()
		w.check()
		w.close()
		failures = w.failures
	})
	for _, failure := range failures {
		t.Error(failure)
	}
}

// sentOver returns how many packets were offered to the links from and to a client's interface.
func (w *world) sentOver(p *port) (up, down uint64) {
	w.net.Do(func() { up, down = p.to.Counters().Packets, p.from.Counters().Packets })
	return up, down
}

// open returns the connections between the daemon and the holders.
func (h *holders) open() (open []*end) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ends := range h.ends {
		for e := range ends {
			open = append(open, e)
		}
	}
	return open
}

// A client that is killed sends nothing more, and nobody hears of it.
func TestKilledClientIsSilent(t *testing.T) {
	killIn(t, []wire.Role{wire.RoleWriter, wire.RoleWatch}, func(w *world, _ *session, actors []*actor) {
		writer, watcher := actors[0], actors[1]
		watcher.process.stop() // it sends nothing either
		time.Sleep(time.Second)
		before, _ := w.sentOver(w.machines[0].ports[0])
		open := len(w.host.holders.open())
		writer.kill()
		time.Sleep(20 * time.Second)
		if after, _ := w.sentOver(w.machines[0].ports[0]); after != before {
			w.failf("a client that was killed has sent %d packets", after-before)
		}
		if n := len(w.host.holders.open()); n != open {
			w.failf("of %d connections to the holder %d are left, when a client was killed", open, n)
		}
		watcher.process.resume()
	})
}

// A daemon that is killed sends nothing more, to clients and to the disk, and holders see all connections closed.
func TestKilledDaemonIsSilent(t *testing.T) {
	killIn(t, []wire.Role{wire.RoleWriter}, func(w *world, _ *session, _ []*actor) {
		open := w.host.holders.open()
		if len(open) == 0 {
			w.failf("no holder is connected")
		}
		written := filesOf(w, w.host.current().disk)
		_, before := w.sentOver(w.machines[0].ports[0])
		w.host.kill()
		if n := len(w.host.holders.open()); n > 0 {
			w.failf("%d connections to holders are open, when the daemon was killed", n)
		}
		time.Sleep(time.Minute)
		if _, after := w.sentOver(w.machines[0].ports[0]); after != before {
			w.failf("a daemon that was killed has sent %d packets", after-before)
		}
		if found := filesOf(w, w.host.disk); !slices.Equal(found, written) {
			w.failf("a daemon that was killed has written to the disk: %q, before %q", found, written)
		}
	})
}

// filesOf returns the files of a directory, and what they have.
func filesOf(w *world, dir string) (files []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.failf("the disk: %v", err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			w.failf("the disk: %v", err)
		}
		files = append(files, e.Name(), string(b))
	}
	return files
}

// A network process that is killed tells its clients nothing, and closes its connections to holders. The monitor starts
// another one, to which the client comes back.
func TestKilledNetworkProcessIsSilent(t *testing.T) {
	killIn(t, []wire.Role{wire.RoleWriter}, func(w *world, _ *session, actors []*actor) {
		m := w.host.current()
		before, open := m.network.running(), w.host.holders.open()
		_, sent := w.sentOver(w.machines[0].ports[0])
		before.kill()
		before.running.Wait()
		if _, after := w.sentOver(w.machines[0].ports[0]); after != sent {
			w.failf("a network process that was killed has sent %d packets", after-sent)
		}
		for _, e := range w.host.holders.open() {
			if slices.Contains(open, e) {
				w.failf("a connection to a holder is open, when the network process was killed")
			}
		}
		time.Sleep(time.Minute)
		if now := m.network.running(); now == nil || now == before {
			w.failf("no other network process was started")
		}
		if s := actors[0].current(); s == nil {
			w.failf("the client has ended with its network process")
		}
	})
}

// A monitor that is killed ends its network process, whose clients are told, and the next monitor has its keys.
func TestKilledMonitorEndsItsNetworkProcess(t *testing.T) {
	killIn(t, []wire.Role{wire.RoleWriter}, func(w *world, _ *session, _ []*actor) {
		m := w.host.current()
		p := m.network.running()
		written := filesOf(w, m.disk)
		w.host.killMonitor()
		time.Sleep(time.Minute)
		if p.lives() {
			w.failf("the network process lives, when the monitor was killed")
		}
		if found := filesOf(w, w.host.disk); !slices.Equal(found, written) {
			w.failf("a monitor that was killed has written to the disk")
		}
	})
}

// A holder that is killed says nothing of the program's end: its client hears only that the session is gone.
func TestKilledHolderIsSilent(t *testing.T) {
	killIn(t, []wire.Role{wire.RoleWriter}, func(w *world, s *session, actors []*actor) {
		s.mu.Lock()
		s.lost = true
		s.mu.Unlock()
		w.host.holders.killNamed(s.name)
		if n := len(w.host.holders.open()); n > 0 {
			w.failf("%d connections to a holder that was killed are open", n)
		}
		<-actors[0].ended
		if err := actors[0].err; !errors.Is(err, client.ErrGone) {
			w.failf("the client of a holder that was killed ends with %v", err)
		}
	})
}

// What a client types after another has taken its place, and before it hears of that, is not for the program.
func TestDisplacedInput(t *testing.T) {
	killIn(t, []wire.Role{wire.RoleWriter}, func(w *world, s *session, actors []*actor) {
		w.set(0, netem.Config{Delay: time.Second}) // so that it types for as long
		b := w.newActor("b", w.newMachine("m1", netem.Config{}), s, wire.RoleWriter)
		w.running.Go(b.run)
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			if s := actors[0].current(); s != nil {
				actors[0].typeKey(s)
			}
		}
		time.Sleep(5 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.displaced) != 1 || s.took["a"] == len(s.typed["a"]) {
			w.failf("displaced were %d; the program has read %d of %d keys", len(s.displaced), s.took["a"], len(s.typed["a"]))
		}
	})
}
