//go:build linux || darwin

// Package sim runs the whole product on virtual time (testing/synctest): the real server and the real holders of
// sessions, with programs in memory, and a network of emulated links on which tests put clients. It must be used in
// a bubble.
package sim

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/server"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// ServerAddr is where the server listens, for UDP and TCP.
var ServerAddr = netip.MustParseAddrPort("10.9.0.1:4433")

// A World is a server, and a client's machine with two interfaces. It is the Network of the client.
type World struct {
	Net     *netem.Net
	Ports   []*Port // interfaces of the client, the one that it prefers first
	Server  *server.Daemon
	Holders *holdertest.Holders

	events chan netmon.Event
	stop   func()
}

// A Port is an interface of the client, and its links to and from the server. Net.Do guards it.
type Port struct {
	Name     string
	Addr     netip.Addr
	Gone     bool // it is down
	To, From *netem.Link
}

// New starts a server whose sessions run the programs that newProgram returns. Every link begins as given. A seed makes
// the same losses.
func New(dir string, link netem.Config, seed uint64, newProgram func(*wire.Launch) holder.Program) (*World, error) {
	w := &World{Holders: holdertest.New(newProgram), events: make(chan netmon.Event, 1)}
	for i, name := range []string{"wlan0", "wwan0"} {
		seed := 4*seed + uint64(2*i)
		w.Ports = append(w.Ports, &Port{
			Name: name,
			Addr: netip.AddrFrom4([4]byte{10, byte(i), 0, 1}),
			To:   netem.NewLink(link, seed),
			From: netem.NewLink(link, seed+1),
		})
	}
	w.Net = netem.NewNet(w.route)
	settings := configs.DefaultServer()
	settings.StateDir = dir
	var err error
	if w.Server, err = server.New(server.Config{Settings: settings, Granted: true, Holders: w.Holders}); err != nil {
		w.Net.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	socket, listener := w.Net.Listen(ServerAddr), w.Net.ListenStream(ServerAddr)
	var wg sync.WaitGroup
	wg.Go(func() { w.Server.Serve(ctx, socket) })
	wg.Go(func() { w.Server.ServeTCP(ctx, listener) })
	w.stop = func() {
		socket.Close()
		listener.Close()
		cancel()
		wg.Wait()
	}
	return w, nil
}

// Close ends the server, and then the network, when all sessions are over.
func (w *World) Close() {
	w.stop()
	w.Holders.Wait()
	w.Net.Close()
}

func (w *World) route(from, to netip.AddrPort) *netem.Link {
	for _, p := range w.Ports {
		switch {
		case p.Gone:
		case to.Addr() == ServerAddr.Addr() && from.Addr() == p.Addr:
			return p.To
		case from.Addr() == ServerAddr.Addr() && to.Addr() == p.Addr:
			return p.From
		}
	}
	return nil // the address is gone
}

// Set changes the links of an interface.
func (w *World) Set(port int, link netem.Config) {
	w.Net.Do(func() {
		w.Ports[port].To.Set(link)
		w.Ports[port].From.Set(link)
	})
}

// Plug takes an interface up or down.
func (w *World) Plug(port int, up bool) {
	w.Net.Do(func() { w.Ports[port].Gone = !up })
}

// Tell reports to the client that its network may have changed.
func (w *World) Tell(e netmon.Event) {
	select {
	case w.events <- e:
	default: // an event is waiting already
	}
}

// ipAndUDP is how many bytes of headers netem does not count.
const ipAndUDP = 28

// Sent returns the number of packets and bytes that both ends have sent, with IP and UDP.
func (w *World) Sent() (packets, bytes uint64) {
	w.Net.Do(func() {
		for _, p := range w.Ports {
			up, down := p.To.Counters(), p.From.Counters()
			packets += up.Packets + down.Packets
			bytes += up.Bytes + down.Bytes
		}
	})
	return packets, bytes + ipAndUDP*packets
}

// Packets returns how many packets the client has sent over an interface.
func (w *World) Packets(port int) (n uint64) {
	w.Net.Do(func() { n = w.Ports[port].To.Counters().Packets })
	return n
}

// Interfaces returns the names of those that are up.
func (w *World) Interfaces() (names []string, err error) {
	w.Net.Do(func() {
		for _, p := range w.Ports {
			if !p.Gone {
				names = append(names, p.Name)
			}
		}
	})
	return names, nil
}

// Lookup returns the way to the server over an interface, or over the first that is up.
func (w *World) Lookup(_ netip.AddrPort, iface string) (route netmon.Route, err error) {
	err = errors.New("no route")
	w.Net.Do(func() {
		for _, p := range w.Ports {
			if err != nil && !p.Gone && (iface == "" || iface == p.Name) {
				route, err = netmon.Route{Interface: p.Name, Source: p.Addr}, nil
			}
		}
	})
	return route, err
}

// Listen opens a UDP socket, which keeps its first address.
func (w *World) Listen(iface string) (net.PacketConn, error) {
	route, err := w.Lookup(ServerAddr, iface)
	if err != nil {
		return nil, err
	}
	return w.Net.Listen(netip.AddrPortFrom(route.Source, 0)), nil
}

// Dial opens a TCP connection.
func (w *World) Dial(ctx context.Context, iface string, remote netip.AddrPort) (net.Conn, error) {
	route, err := w.Lookup(remote, iface)
	if err != nil {
		return nil, err
	}
	return w.Net.DialStream(ctx, route.Source, remote)
}

// Watch calls f with what Tell reports.
func (w *World) Watch(ctx context.Context, _ func() netip.AddrPort, f func(netmon.Event)) error {
	for {
		select {
		case e := <-w.events:
			f(e)
		case <-ctx.Done():
			return nil
		}
	}
}
