//go:build linux || darwin

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// openPages draws pages in browsers, on a phone, beside the other clients of sessions with a terminal. The worlds of the
// kept seeds have none: they stay as they are.
func (w *world) openPages() {
	if w.seed%3 != 1 {
		return
	}
	rng := rand.New(rand.NewPCG(w.seed, 5))
	var phone *machine
	for _, s := range w.sessions {
		if !s.pty() {
			continue
		}
		if phone == nil {
			phone = w.newMachine("phone", netem.Config{Delay: time.Duration(rng.IntN(int(150 * time.Millisecond)))})
		}
		a := w.newActor(fmt.Sprintf("c%d", len(w.actors)), phone, s, []wire.Role{wire.RoleShare, wire.RoleWatch}[rng.IntN(2)])
		a.page, a.paths = true, ""
	}
}

// inBrowser makes the configuration of a client that of cmd/qtweb.
func inBrowser(c *client.Config, p *process) {
	const url = "192.0.2.1:443"
	c.NoUDP, c.Network = true, browser{p}
	c.Resolve = func(context.Context) ([]netip.AddrPort, error) {
		return []netip.AddrPort{netip.MustParseAddrPort(url)}, nil
	}
}

// A browser is the network of a page: it makes WebSockets to where the page is from, which are streams here. It has no
// UDP, knows no interface, and says that something has changed.
type browser struct{ process *process }

func (b browser) Dial(ctx context.Context, _ string, _ netip.AddrPort) (net.Conn, error) {
	return b.process.Dial(ctx, "", serverAddrs[0])
}

func (b browser) Listen(string) (net.PacketConn, error) {
	return nil, errors.New("a browser has no UDP")
}

func (b browser) Interfaces() ([]string, error) { return nil, nil }

func (b browser) Lookup(netip.AddrPort, string) (netmon.Route, error) { return netmon.Route{}, nil }

func (b browser) Watch(ctx context.Context, remote func() netip.AddrPort, f func(netmon.Event)) error {
	return b.process.Watch(ctx, remote, f)
}

// A page on a phone that has slept for long shows at once what has happened meanwhile.
func TestPageSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1, t.TempDir())
		m := w.newMachine("m0", netem.Config{Delay: 25 * time.Millisecond})
		phone := w.newMachine("phone", netem.Config{Delay: 25 * time.Millisecond})
		s := w.newSession("s0", "shell")
		w.sessions = append(w.sessions, s)
		w.newActor("c0", m, s, wire.RoleWriter)
		page := w.newActor("c1", phone, s, wire.RoleShare)
		page.page = true
		w.startDaemon()
		for _, a := range w.everyone() {
			w.running.Go(a.run)
		}
		time.Sleep(time.Minute)
		for range 2 {
			page.process.stop()
			time.Sleep(20 * time.Minute)
			page.mu.Lock()
			before := page.received
			page.mu.Unlock()
			page.process.resume()
			time.Sleep(5*50*time.Millisecond + 300*time.Millisecond)
			page.mu.Lock()
			if page.state != client.Live || page.received == before && !page.redrawn {
				t.Errorf("the page is %v, with %d bytes after %d", page.state, page.received, before)
			}
			page.mu.Unlock()
			time.Sleep(time.Minute)
		}
		w.heal()
		w.check()
		w.close()
		for _, failure := range w.failures {
			t.Error(failure)
		}
	})
}
