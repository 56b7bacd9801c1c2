//go:build linux || darwin

package client

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	_ "github.com/quicterm/quicterm/bench/bubble"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/pipe"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/server"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A world is a client, a server and the network between them, on virtual time.
// The server and the holder are real ones; the program and the network are in memory.
type world struct {
	t           *testing.T
	net         *netem.Net
	ports       []*port // interfaces of the client, the one that it prefers first
	settings    *configs.Server
	server      *server.Daemon
	holders     *holdertest.Holders
	program     *programtest.Echo
	pty         bool // the program has a terminal
	kept        sync.WaitGroup
	stop        func() // kills the daemon
	starting    func() // called when a session starts, unless nil
	floods      bool   // the program is a flooder
	events      chan netmon.Event
	paths       string                 // the client's setting
	compression string                 // the same
	config      func(*Config)          // changes the client's configuration, unless nil
	noUDP       bool                   // UDP packets are dropped
	noTCP       bool                   // TCP packets to and from the daemon are dropped
	sockets     atomic.Int64           // that the client has opened so far
	opened      func()                 // called when it opens another one, unless nil
	tap         func(sent bool, n int) // sees the packets of the client's sockets, unless nil
	logins      atomic.Int64           // by ssh
	starvedFor  atomic.Int64           // how long the client does not run when it should next, in nanoseconds
	runsAgain   atomic.Int64           // until when it receives nothing, Unix nanoseconds
}

// A port is an interface of the client, and its links to and from the server.
type port struct {
	name     string
	addr     netip.Addr
	gone     bool // it is down
	to, from *netem.Link
}

var (
	serverAddr = netip.MustParseAddrPort("10.9.0.1:4433")
	sshAddr    = netip.MustParseAddrPort("10.9.0.1:22")
)

// sshLogin is how long a login by ssh takes.
const sshLogin = 500 * time.Millisecond

// inWorld calls f in a bubble with a world whose links have the given configuration.
func inWorld(t *testing.T, link netem.Config, pty bool, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, pty: pty, events: make(chan netmon.Event, 1)}
		for i, name := range []string{"wlan0", "wwan0"} {
			seed := uint64(2 * i)
			w.ports = append(w.ports, &port{
				name: name,
				addr: netip.AddrFrom4([4]byte{10, byte(i), 0, 1}),
				to:   netem.NewLink(link, seed),
				from: netem.NewLink(link, seed+1),
			})
		}
		route := func(from, to netip.AddrPort) *netem.Link {
			for _, p := range w.ports {
				switch {
				case p.gone:
				case to.Addr() == serverAddr.Addr() && from.Addr() == p.addr:
					return p.to
				case from.Addr() == serverAddr.Addr() && to.Addr() == p.addr:
					return p.from
				}
			}
			return nil // the address is gone
		}
		w.net = netem.NewNet(func(from, to netip.AddrPort) *netem.Link {
			if w.noUDP {
				return nil
			}
			return route(from, to)
		})
		w.net.RouteStreams(func(from, to netip.AddrPort) *netem.Link {
			if w.noTCP && (from == serverAddr || to == serverAddr) {
				return nil
			}
			return route(from, to)
		})
		defer w.net.Close()
		w.settings = configs.DefaultServer()
		w.settings.StateDir = t.TempDir()
		w.program = programtest.NewEcho(pty)
		w.holders = holdertest.New(func(*wire.Launch) holder.Program {
			if w.starting != nil {
				w.starting()
			}
			if w.floods {
				return flooder{w.program}
			}
			return w.program
		})
		w.serve()
		f(w)
		w.stop()
		w.holders.Wait()
		w.kept.Wait()
	})
}

// serve starts a daemon with the keys of the last one.
func (w *world) serve() {
	s, err := server.New(server.Config{Settings: w.settings, Granted: true, Holders: w.holders})
	if err != nil {
		w.t.Fatal(err)
	}
	socket := w.net.Listen(serverAddr)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(ctx, socket) })
	listener := w.net.ListenStream(serverAddr)
	wg.Go(func() { s.ServeTCP(ctx, listener) })
	sshd := w.net.ListenStream(sshAddr)
	wg.Go(func() {
		for {
			c, err := sshd.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				s.ServeLocal(ctx, c, uint32(os.Geteuid()))
			})
		}
	})
	w.server = s
	w.stop = func() { // as SIGKILL does: the daemon sends nothing more to its clients
		socket.Close()
		listener.Close()
		sshd.Close()
		cancel()
		wg.Wait()
	}
}

// A tunnel is the world's ssh.
type tunnel struct{ w *world }

func (t tunnel) Dial(ctx context.Context, _ bool) (carrier.Carrier, error) {
	t.w.logins.Add(1)
	c, err := t.w.Dial(ctx, "", sshAddr)
	if err != nil {
		return nil, err
	}
	time.Sleep(sshLogin)
	return pipe.New(c), nil
}

// attach opens the session.
func (w *world) attach(streams Streams) *Session {
	s, err := w.tryAttach(&wire.Attach{Session: "world", PTY: w.pty}, streams)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// tryAttach sends a request.
func (w *world) tryAttach(req *wire.Attach, streams Streams) (*Session, error) {
	cfg := Config{
		Paths: w.paths, Compression: w.compression,
		Log:       slog.New(slog.DiscardHandler),
		Resolve:   func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{serverAddr}, nil },
		Network:   w,
		CheckHost: func(ssh.PublicKey) error { return nil },
		Token:     w.token,
	}
	if w.config != nil {
		w.config(&cfg)
	}
	return New(cfg).Attach(context.Background(), req, streams)
}

// token logs in once.
func (w *world) token(context.Context) ([]byte, error) {
	return w.server.IssueToken(uint32(os.Geteuid()))
}

// The world is the Network of its client. Its sockets keep their first address.

// A starvedSocket receives nothing while its client does not run.
type starvedSocket struct {
	net.PacketConn
	w *world
}

func (s starvedSocket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, addr, err := s.PacketConn.ReadFrom(b)
	if s.w.tap != nil {
		s.w.tap(false, n)
	}
	if until := time.Unix(0, s.w.runsAgain.Load()); time.Now().Before(until) {
		time.Sleep(time.Until(until))
	}
	return n, addr, err
}

func (s starvedSocket) WriteTo(b []byte, addr net.Addr) (int, error) {
	if s.w.tap != nil {
		s.w.tap(true, len(b))
	}
	return s.PacketConn.WriteTo(b, addr)
}

// starve makes the client's roamer, which asks for the interfaces, and its sockets stop for d.
func (w *world) starve(d time.Duration) {
	w.runsAgain.Store(time.Now().Add(d).UnixNano())
	w.starvedFor.Store(int64(d))
	w.tell(netmon.Changed)
}

func (w *world) Interfaces() (names []string, err error) {
	time.Sleep(time.Duration(w.starvedFor.Swap(0)))
	w.net.Do(func() {
		for _, p := range w.ports {
			if !p.gone {
				names = append(names, p.name)
			}
		}
	})
	return names, nil
}

func (w *world) Listen(iface string) (net.PacketConn, error) {
	w.sockets.Add(1)
	if w.opened != nil {
		w.opened()
	}
	route, err := w.Lookup(serverAddr, iface)
	if err != nil {
		return nil, err
	}
	return starvedSocket{w.net.Listen(netip.AddrPortFrom(route.Source, 0)), w}, nil
}

func (w *world) Dial(ctx context.Context, iface string, remote netip.AddrPort) (net.Conn, error) {
	route, err := w.Lookup(remote, iface)
	if err != nil {
		return nil, err
	}
	c, err := w.net.DialStream(ctx, route.Source, remote)
	if err != nil {
		return nil, err
	}
	return tappedConn{c, w}, nil
}

// A tappedConn is a TCP connection of the client.
type tappedConn struct {
	net.Conn
	w *world
}

func (c tappedConn) Write(b []byte) (int, error) {
	if c.w.tap != nil {
		c.w.tap(true, len(b))
	}
	return c.Conn.Write(b)
}

func (c tappedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.w.tap != nil {
		c.w.tap(false, n)
	}
	return n, err
}

func (w *world) Lookup(_ netip.AddrPort, iface string) (route netmon.Route, err error) {
	err = errors.New("no route")
	w.net.Do(func() {
		for _, p := range w.ports {
			if err != nil && !p.gone && (iface == "" || iface == p.name) {
				route, err = netmon.Route{Interface: p.name, Source: p.addr}, nil
			}
		}
	})
	return route, err
}

func (w *world) Watch(ctx context.Context, _ func() netip.AddrPort, f func(netmon.Event)) error {
	for {
		select {
		case e := <-w.events:
			f(e)
		case <-ctx.Done():
			return nil
		}
	}
}

// set changes all links.
func (w *world) set(cfg netem.Config) {
	for i := range w.ports {
		w.setPort(i, cfg)
	}
}

func (w *world) setPort(i int, cfg netem.Config) {
	w.net.Do(func() {
		w.ports[i].to.Set(cfg)
		w.ports[i].from.Set(cfg)
	})
}

// move gives an interface another address. Packets to and from the address before are lost.
func (w *world) move(i int) {
	w.net.Do(func() { w.ports[i].addr = w.ports[i].addr.Next() })
}

// block makes the network drop UDP packets, or no more.
func (w *world) block(udp bool) {
	w.net.Do(func() { w.noUDP = udp })
}

// plug takes an interface up or down.
func (w *world) plug(i int, up bool) {
	w.net.Do(func() { w.ports[i].gone = !up })
}

// tell reports to the client that its network may have changed.
func (w *world) tell(e netmon.Event) {
	select {
	case w.events <- e:
	default: // an event is waiting already
	}
}
