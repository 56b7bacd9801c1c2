//go:build linux || darwin

package quicterm

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/rundir"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A notebook is written by some goroutines and read by another.
type notebook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (n *notebook) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Write(b)
}

func (n *notebook) Close() error { return nil }

func (n *notebook) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.String()
}

// await waits until words have been written a number of times.
func (n *notebook) await(t *testing.T, words string, times int) {
	t.Helper()
	for start := time.Now(); strings.Count(n.String(), words) < times; time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatalf("no %q, %d times, in:\n%s", words, times, n)
		}
	}
}

// A typist is a program of which only the input matters.
type typist struct {
	*echo
	input notebook
}

func (p *typist) Stdin() io.WriteCloser { return &p.input }

// A host is a machine with one session, whose daemon can be started anew.
type host struct {
	t        *testing.T
	settings *configs.Server
	log      notebook
	program  *typist
	server   *Server
	addr     netip.AddrPort
	stop     func()
	tls      *tls.Config
	attached wire.Attached
}

// newHost returns a host with a session that a client has attached to.
func newHost(t *testing.T) *host {
	h := &host{t: t, settings: configs.DefaultServer(), program: &typist{echo: newEcho(true)}}
	h.settings.StateDir, h.settings.RuntimeDir = t.TempDir(), t.TempDir()
	h.tls = &tls.Config{
		InsecureSkipVerify: true,
		NextProtos:         []string{wire.ALPN},
		ServerName:         auth.ServerName(nil),
		ClientSessionCache: tls.NewLRUClientSessionCache(1),
	}
	spec := wire.Spec{ID: wire.SessionID{1}, Name: "early", PTY: true, Buffer: 1 << 20, ExitedTTL: time.Hour, PipeTTL: time.Hour}
	socket, err := holder.Listen(rundir.Base(h.settings.RuntimeDir), holder.SocketName(spec.ID))
	if err != nil {
		t.Fatal(err)
	}
	keeper := holder.New(spec, h.program, slog.New(slog.DiscardHandler))
	var wg sync.WaitGroup
	wg.Go(keeper.Run)
	wg.Go(func() { keeper.Serve(socket) })
	h.serve()
	t.Cleanup(func() {
		kill, _ := wire.New(&wire.Kill{})
		keeper.Handle(&wire.Open{}, kill)
		h.stop()
		socket.Close()
		wg.Wait()
	})
	c, _, _ := h.dial(carrier.DialQUIC, false)
	defer c.Close()
	h.say(c, nil, h.login(&wire.Attach{Mode: wire.ModeAttach, Session: spec.ID.String(), PTY: true})...)
	m, err := wire.Read(c, wire.MaxMessage)
	if err == nil {
		err = m.Decode(&h.attached)
	}
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, ok := h.tls.ClientSessionCache.Get(h.tls.ServerName); ok {
			break
		} else if time.Since(start) > 10*time.Second {
			t.Fatal("no TLS ticket")
		}
	}
	return h
}

// serve starts a daemon that has what the last one has kept.
func (h *host) serve() {
	log := slog.New(slog.NewTextHandler(&h.log, nil))
	s, err := NewServer(ServerConfig{Settings: h.settings, Log: log, Granted: true})
	if err != nil {
		h.t.Fatal(err)
	}
	udp := h.listen()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.serveQUIC(ctx, udp) })
	h.server, h.addr = s, udp.LocalAddr().(*net.UDPAddr).AddrPort()
	h.stop = func() {
		cancel()
		wg.Wait()
	}
}

// login returns what a client with a good ticket says that asks for something.
func (h *host) login(request wire.Body) []wire.Body {
	ticket, err := h.server.tickets.Issue(time.Now(), uint32(os.Geteuid()))
	if err != nil {
		h.t.Fatal(err)
	}
	return []wire.Body{&wire.Hello{}, &wire.Ticket{Ticket: ticket}, request}
}

// resume returns what a client says that comes back.
func (h *host) resume(n uint64) wire.Body {
	r := &wire.Resume{UID: h.attached.UID, ID: h.attached.ID, N: n}
	r.Proof = auth.Proof(h.attached.Secret, r.Statement())
	return r
}

// typed is a frame of input.
type typed struct {
	seq  uint64
	text string
}

// say sends messages, and a frame behind them unless that is nil, at once.
func (h *host) say(c *carrier.QUIC, behind *typed, messages ...wire.Body) {
	h.t.Helper()
	var b []byte
	for _, v := range messages {
		m, err := wire.New(v)
		if err != nil {
			h.t.Fatal(err)
		}
		b = m.Append(b)
	}
	if behind != nil {
		b = buffer.AppendFrame(b, buffer.Frame{Seq: behind.seq, Type: session.Stdin, Payload: []byte(behind.text)})
	}
	if _, err := c.Write(b); err != nil {
		h.t.Fatal(err)
	}
}

// want reads a message, which must be of a type.
func (h *host) want(why string, c *carrier.QUIC, want wire.Type) {
	h.t.Helper()
	if m, err := wire.Read(c, wire.MaxMessage); err != nil || m.Type != want {
		h.t.Fatalf("%s: message %d, %v; want %d", why, m.Type, err, want)
	}
}

// A tap is a socket that keeps what was sent, and may be deaf: a client that hears
// nothing cannot finish the handshake.
type tap struct {
	net.PacketConn
	hearing chan struct{} // closed when it hears

	mu   sync.Mutex
	sent [][]byte
}

func (s *tap) WriteTo(b []byte, addr net.Addr) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, bytes.Clone(b))
	return s.PacketConn.WriteTo(b, addr)
}

func (s *tap) ReadFrom(b []byte) (int, net.Addr, error) {
	<-s.hearing
	return s.PacketConn.ReadFrom(b)
}

// packets returns what was sent.
func (s *tap) packets() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

type dialFunc func(context.Context, net.PacketConn, netip.AddrPort, *tls.Config) (*carrier.QUIC, error)

func (h *host) listen() *net.UDPConn {
	h.t.Helper()
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		h.t.Fatal(err)
	}
	return udp
}

// dial connects to the daemon. If deaf, it hears nothing until hear is called.
func (h *host) dial(dial dialFunc, deaf bool) (c *carrier.QUIC, t *tap, hear func()) {
	h.t.Helper()
	t = &tap{PacketConn: h.listen(), hearing: make(chan struct{})}
	hear = sync.OnceFunc(func() { close(t.hearing) })
	if !deaf {
		hear()
	}
	c, err := dial(context.Background(), t, h.addr, h.tls)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	h.t.Cleanup(hear) // comes before
	return c, t, hear
}

// wantEarly waits for the handshake's end: the early data must have been taken.
func (h *host) wantEarly(c *carrier.QUIC) {
	h.t.Helper()
	<-c.Conn().HandshakeComplete()
	if !c.Conn().ConnectionState().Used0RTT {
		h.t.Error("the early data was not taken")
	}
}

// A Resume is served in early data, by a daemon that was started anew too, and
// once: who sends the packets again is denied, and what is behind a number that
// was used does not reach the program.
func TestResumeInEarlyData(t *testing.T) {
	h := newHost(t)
	c, seen, hear := h.dial(carrier.DialQUICEarly, true)
	h.say(c, &typed{1, "one,"}, h.resume(1))
	h.program.input.await(t, "one,", 1)
	hear()
	h.want("in early data", c, wire.TypeResumed)
	h.wantEarly(c)

	h.stop()
	h.serve()
	c, _, _ = h.dial(carrier.DialQUICEarly, false)
	h.say(c, &typed{2, "two,"}, h.resume(2))
	h.want("of a daemon that was started anew", c, wire.TypeResumed)
	h.wantEarly(c)
	h.program.input.await(t, "two,", 1)

	stranger, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(h.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	for _, packet := range seen.packets() {
		stranger.Write(packet)
	}
	h.log.await(t, "does not accept the resume", 1)

	c, _, _ = h.dial(carrier.DialQUICEarly, false)
	h.say(c, &typed{3, "three,"}, h.resume(2))
	h.want("with a number that was used", c, wire.TypeDenied)
	c.Close()
	h.log.await(t, "does not accept the resume", 2)
	if got := h.program.input.String(); got != "one,two," {
		t.Errorf("the program was given %q", got)
	}
}

// A login in early data is not acted upon before the handshake is complete.
func TestLoginInEarlyData(t *testing.T) {
	h := newHost(t)
	c, _, hear := h.dial(carrier.DialQUICEarly, true)
	h.say(c, nil, h.login(&wire.Kill{Session: h.attached.ID.String()})...)
	time.Sleep(300 * time.Millisecond)
	if strings.Count(h.log.String(), "authenticated") != 1 { // who has attached
		t.Errorf("authenticated before the handshake is complete:\n%s", &h.log)
	}
	hear()
	h.want("after the handshake", c, wire.TypeDone)
	h.wantEarly(c)
}
