//go:build linux || darwin

package quicterm

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	mrand "math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A world is a client, a server and the network between them, on virtual time.
// The holder is a real one, its program is not, and between the holder and the
// network there is no daemon but what relays without a look at it.
type world struct {
	t           *testing.T
	net         *netem.Net
	ports       []*port // interfaces of the client, that it is to use first
	key         *auth.HostKey
	reset       quic.StatelessResetKey
	holder      *holder.Holder
	program     *echo
	kept        sync.WaitGroup
	stop        func() // ends the present daemon
	events      chan netmon.Event
	paths       string       // the client's setting
	compression string       // the same
	sockets     atomic.Int64 // that the client has opened so far
}

// A port is an interface of the client, and the links that it is at.
type port struct {
	name     string
	addr     netip.Addr
	gone     bool // it is not up
	to, from *netem.Link
}

var serverAddr = netip.MustParseAddrPort("10.9.0.1:4433")

// inWorld calls f in a bubble with a world whose links have the given properties.
func inWorld(t *testing.T, link netem.Config, pty bool, f func(w *world)) {
	// On more processors the race detector crashes where timers of a bubble end.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, events: make(chan netmon.Event, 1)}
		for i, name := range []string{"wlan0", "wwan0"} {
			seed := uint64(2 * i)
			w.ports = append(w.ports, &port{
				name: name,
				addr: netip.AddrFrom4([4]byte{10, byte(i), 0, 1}),
				to:   netem.NewLink(link, seed),
				from: netem.NewLink(link, seed+1),
			})
		}
		w.net = netem.NewNet(func(from, to netip.AddrPort) *netem.Link {
			for _, p := range w.ports {
				switch {
				case p.gone:
				case to == serverAddr && from.Addr() == p.addr:
					return p.to
				case from == serverAddr && to.Addr() == p.addr:
					return p.from
				}
			}
			return nil // an address that is gone
		})
		defer w.net.Close()
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if w.key, err = auth.NewHostKey(private); err != nil {
			t.Fatal(err)
		}
		w.program = newEcho(pty)
		spec := wire.Spec{ID: wire.SessionID{1}, Name: "world", PTY: pty, Buffer: 64 << 20,
			ExitedTTL: 24 * time.Hour, PipeTTL: time.Hour}
		w.holder = holder.New(spec, w.program, slog.New(slog.DiscardHandler))
		w.kept.Go(w.holder.Run)
		w.serve()
		f(w)
		w.stop()
		w.kept.Wait()
	})
}

// serve starts a daemon.
func (w *world) serve() {
	socket := w.net.Listen(serverAddr)
	transport := &quic.Transport{Conn: socket, StatelessResetKey: &w.reset}
	listener, err := transport.ListenEarly(&tls.Config{
		NextProtos:     []string{wire.ALPN},
		GetCertificate: auth.Certificate([]*auth.HostKey{w.key}),
	}, carrier.ServerConfig())
	if err != nil {
		w.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept(context.Background())
			if err != nil {
				return
			}
			wg.Go(func() { w.relay(conn) })
		}
	})
	w.stop = func() { // like a kill: nothing is said to the clients
		transport.Close()
		socket.Close()
		wg.Wait()
	}
}

// relay passes a client's request on to the holder, whoever it is.
func (w *world) relay(conn *quic.Conn) {
	defer conn.CloseWithError(0, "")
	stream, err := conn.AcceptStream(context.Background())
	if err != nil {
		return
	}
	link := carrier.AcceptQUIC(conn, stream)
	for {
		m, err := wire.Read(link, wire.MaxMessage)
		if err != nil {
			return
		}
		if m.Type != wire.TypeAttach && m.Type != wire.TypeResume {
			continue
		}
		answer, carry, err := w.holder.Handle(&wire.Open{Client: "test"}, m)
		if err != nil || wire.Write(link, answer) != nil {
			return
		}
		if carry != nil {
			carry(link)
		}
		link.CloseWrite()
		select {
		case <-conn.Context().Done():
		case <-time.After(lingerTime):
		}
		return
	}
}

// attach opens the session.
func (w *world) attach(streams Streams) *Session {
	settings := configs.DefaultClient()
	if w.paths != "" {
		settings.Paths = w.paths
	}
	if w.compression != "" {
		settings.Compression = w.compression
	}
	client := NewClient(ClientConfig{
		Settings:  settings,
		Log:       slog.New(slog.DiscardHandler),
		Resolve:   func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{serverAddr}, nil },
		Network:   w,
		CheckHost: func(ssh.PublicKey) error { return nil },
		Ticket:    []byte("any"),
	})
	s, err := client.Attach(context.Background(), &wire.Attach{PTY: w.program.pty}, streams)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// The world is a client's network. Its sockets keep the address that they begin
// with.

func (w *world) Interfaces() (names []string, err error) {
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
	route, err := w.Lookup(serverAddr, iface)
	if err != nil {
		return nil, err
	}
	return w.net.Listen(netip.AddrPortFrom(route.Source, 0)), nil
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

// move gives an interface another address: that of the connections that it has
// is gone.
func (w *world) move(i int) {
	w.net.Do(func() { w.ports[i].addr = w.ports[i].addr.Next() })
}

// plug takes an interface down, or up.
func (w *world) plug(i int, up bool) {
	w.net.Do(func() { w.ports[i].gone = !up })
}

// tell has the client see that its network may have changed.
func (w *world) tell(e netmon.Event) {
	select {
	case w.events <- e:
	default: // it is to look already
	}
}

// An echo is a program that prints what it reads, until the end of its input.
type echo struct {
	pty    bool
	in     *io.PipeReader
	stdin  *io.PipeWriter
	stdout *io.PipeReader
	stderr *io.PipeReader
	out    *io.PipeWriter
	err    *io.PipeWriter
	asleep atomic.Pointer[chan struct{}] // if there is one, it reads no more before that is closed
}

func newEcho(pty bool) *echo {
	e := &echo{pty: pty}
	e.in, e.stdin = io.Pipe()
	e.stdout, e.out = io.Pipe()
	e.stderr, e.err = io.Pipe()
	return e
}

func (e *echo) Terminal() bool            { return e.pty }
func (e *echo) Stdin() io.WriteCloser     { return e.stdin }
func (e *echo) Stdout() io.ReadCloser     { return e.stdout }
func (e *echo) Stderr() io.ReadCloser     { return e.stderr }
func (e *echo) Resize(session.Size) error { return nil }
func (e *echo) Size() session.Size        { return session.Size{} }
func (e *echo) Signal(syscall.Signal)     { e.in.CloseWithError(io.EOF) }
func (e *echo) Hangup(sig syscall.Signal) { e.Signal(sig) }
func (e *echo) Close()                    { e.in.Close(); e.stdout.Close(); e.stderr.Close() }

// Wait is the program. On a terminal, ^D ends its input.
func (e *echo) Wait() byte {
	buf := make([]byte, 4096)
	for {
		if c := e.asleep.Load(); c != nil {
			<-*c
		}
		n, err := e.in.Read(buf)
		end := bytes.IndexByte(buf[:n], 4)
		if e.pty && end >= 0 {
			n, err = end, io.EOF
		}
		e.out.Write(buf[:n])
		if err != nil {
			break
		}
	}
	e.out.Close()
	e.err.Close()
	return 7
}

// A command without a terminal: every byte arrives, both ways, although the
// network is gone for ten minutes, the daemon is restarted and the address
// changes.
func TestPipeThroughOutage(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond, Rate: 20e6, Queue: 1 << 20}, false, func(w *world) {
		var out bytes.Buffer
		s := w.attach(Streams{Stdout: &out})
		in := make([]byte, 3<<20)
		rand.Read(in)
		w.kept.Go(func() {
			third := len(in) / 3
			s.Write(in[:third])
			w.set(netem.Config{Down: true})
			s.Write(in[third : 2*third])
			time.Sleep(10 * time.Minute)
			w.stop()
			w.move(0)
			w.set(netem.Config{Delay: 50 * time.Millisecond})
			w.serve()
			s.Write(in[2*third:])
			s.CloseWrite()
		})
		start := time.Now()
		status, err := s.Run(context.Background())
		if status != 7 || err != nil {
			t.Errorf("status %d, %v; want 7", status, err)
		}
		if !bytes.Equal(out.Bytes(), in) {
			t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(in))
		}
		t.Logf("took %v", time.Since(start))
	})
}

// Whatever happens, in any order, for hours: what is typed comes back, once,
// and nothing is left when the session is over.
func TestChaos(t *testing.T) {
	for seed, paths := range []string{"failover", "standby", "redundant"} {
		events := 50
		if paths == "redundant" && !testing.Short() {
			events = 500
		}
		t.Run(paths, func(t *testing.T) {
			inWorld(t, netem.Config{Delay: 20 * time.Millisecond}, true, func(w *world) {
				w.paths = paths
				var out bytes.Buffer
				s := w.attach(Streams{Stdout: &out})
				in := w.chaos(s, uint64(seed), events)
				start := time.Now()
				status, err := s.Run(context.Background())
				w.stop()
				w.serve()
				if status != 7 || err != nil {
					t.Errorf("status %d, %v; want 7", status, err)
				}
				if want := in(); !bytes.Equal(out.Bytes(), want) {
					t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(want))
				}
				if n := w.net.Sockets(); n != 1 {
					t.Errorf("%d sockets are open, want the server's", n)
				}
				t.Logf("%d events in %v", events, time.Since(start).Round(time.Second))
			})
		})
	}
}

// chaos has a number of random events happen while somebody types, then heals
// the network and ends the session. It returns a function that tells what was
// typed, to be called after that.
func (w *world) chaos(s *Session, seed uint64, events int) (typed func() []byte) {
	rng := mrand.New(mrand.NewPCG(seed, 0))
	var all []byte
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	type_ := func(n int) {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(' ' + len(all)%90)
			all = append(all, b[i])
		}
		s.Write(b)
	}
	w.kept.Go(func() {
		for range events {
			for range rng.IntN(20) {
				type_(1)
				time.Sleep(upTo(200 * time.Millisecond))
			}
			port := rng.IntN(len(w.ports))
			change := netmon.Changed
			switch rng.IntN(10) {
			case 0:
				w.set(netem.Config{Down: true})
				type_(1)
				time.Sleep(upTo(5 * time.Second))
			case 1:
				w.set(netem.Config{Down: true})
				time.Sleep(upTo(10 * time.Minute))
			case 2:
				w.move(port)
			case 3:
				w.stop()
				time.Sleep(upTo(time.Minute))
				w.serve()
			case 4:
				type_(rng.IntN(100_000))
			case 5:
				time.Sleep(upTo(5 * time.Minute))
			case 6:
				change = netmon.Woke
			case 7:
				w.plug(port, false)
			case 8:
				w.plug(port, true)
			case 9:
				w.setPort(port, netem.Config{Down: true})
				type_(1)
				time.Sleep(upTo(10 * time.Second))
			}
			if rng.IntN(2) == 0 {
				w.tell(change)
			}
			w.set(netem.Config{
				Delay:     upTo(300 * time.Millisecond),
				Jitter:    upTo(50*time.Millisecond) + 1,
				Loss:      rng.Float64() * 0.4,
				Duplicate: rng.Float64() * 0.1,
				Reorder:   rng.Float64() * 0.1,
			})
		}
		w.plug(0, true)
		w.set(netem.Config{Delay: 20 * time.Millisecond})
		s.CloseWrite()
	})
	return func() []byte { return all }
}
