//go:build linux || darwin

package quicterm

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"io"
	"log/slog"
	mrand "math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"sync"
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
	t        *testing.T
	net      *netem.Net
	up, down *netem.Link
	home     netip.Addr // the client's address now
	key      *auth.HostKey
	reset    quic.StatelessResetKey
	holder   *holder.Holder
	program  *echo
	kept     sync.WaitGroup
	stop     func() // ends the present daemon
	events   chan netmon.Event
}

var (
	clientAddr = netip.MustParseAddr("10.0.0.1")
	serverAddr = netip.MustParseAddrPort("10.0.0.2:4433")
)

// inWorld calls f in a bubble with a world whose links have the given properties.
func inWorld(t *testing.T, link netem.Config, pty bool, f func(w *world)) {
	// On more processors the race detector crashes where timers of a bubble end.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, events: make(chan netmon.Event, 1), up: netem.NewLink(link, 1), down: netem.NewLink(link, 2), home: clientAddr}
		w.net = netem.NewNet(func(from, to netip.AddrPort) *netem.Link {
			switch {
			case to == serverAddr && from.Addr() == w.home:
				return w.up
			case from == serverAddr && to.Addr() == w.home:
				return w.down
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
	listener, err := transport.Listen(&tls.Config{
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
	client := NewClient(ClientConfig{
		Settings:  configs.DefaultClient(),
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

// The world is a client's network, of one interface.

func (w *world) Interfaces() ([]string, error) { return []string{"wlan0"}, nil }

func (w *world) Listen(string) (net.PacketConn, error) {
	return w.net.Listen(netip.AddrPortFrom(w.address(), 0)), nil
}

func (w *world) Lookup(netip.AddrPort, string) (netmon.Route, error) {
	return netmon.Route{Interface: "wlan0", Source: w.address()}, nil
}

func (w *world) Watch(ctx context.Context, _ func() netip.AddrPort, f func(netmon.Event)) error {
	for {
		select {
		case e := <-w.events:
			f(e)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *world) address() (home netip.Addr) {
	w.net.Do(func() { home = w.home })
	return home
}

// set changes both links.
func (w *world) set(cfg netem.Config) {
	w.net.Do(func() {
		w.up.Set(cfg)
		w.down.Set(cfg)
	})
}

// move gives the client another address: that of the connections that it has is
// gone.
func (w *world) move() {
	w.net.Do(func() { w.home = w.home.Next() })
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
			w.move()
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

// Whatever happens, in any order, for hours: what is typed comes back, once.
func TestChaos(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		inWorld(t, netem.Config{Delay: 20 * time.Millisecond}, true, func(w *world) {
			var out bytes.Buffer
			s := w.attach(Streams{Stdout: &out})
			in := w.chaos(s, seed, 60)
			status, err := s.Run(context.Background())
			w.stop()
			w.serve()
			if status != 7 || err != nil {
				t.Errorf("seed %d: status %d, %v; want 7", seed, status, err)
			}
			if want := in(); !bytes.Equal(out.Bytes(), want) {
				t.Errorf("seed %d: %d bytes came back, not the %d that were sent", seed, out.Len(), len(want))
			}
			if n := w.net.Sockets(); n != 1 {
				t.Errorf("seed %d: %d sockets are open, want the server's", seed, n)
			}
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
			switch rng.IntN(8) {
			case 0:
				w.set(netem.Config{Down: true})
				type_(1)
				time.Sleep(upTo(5 * time.Second))
			case 1:
				w.set(netem.Config{Down: true})
				time.Sleep(upTo(3 * time.Hour))
			case 2:
				w.move()
				if rng.IntN(2) == 0 {
					w.tell(netmon.Changed)
				}
			case 6:
				w.tell(netmon.Woke)
			case 3:
				w.stop()
				time.Sleep(upTo(time.Minute))
				w.serve()
			case 4:
				type_(rng.IntN(100_000))
			case 5:
				time.Sleep(upTo(5 * time.Minute))
			}
			w.set(netem.Config{
				Delay:     upTo(300 * time.Millisecond),
				Jitter:    upTo(50*time.Millisecond) + 1,
				Loss:      rng.Float64() * 0.4,
				Duplicate: rng.Float64() * 0.1,
				Reorder:   rng.Float64() * 0.1,
			})
		}
		w.set(netem.Config{Delay: 20 * time.Millisecond})
		s.CloseWrite()
	})
	return func() []byte { return all }
}
