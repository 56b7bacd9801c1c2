//go:build linux || darwin

package server

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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/quicterm/quicterm/bench/bubble"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/migrate/carrier/sealed"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A notebook keeps what is written to it, for any goroutine to read.
type notebook struct {
	mu     sync.Mutex
	buf    bytes.Buffer
	settle func() // returns when all is done that happens at this time, or nil
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
	for start := time.Now(); strings.Count(n.String(), words) < times; time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("no %q, %d times, in:\n%s", words, times, n)
		}
	}
	if n.settle != nil {
		n.settle()
	}
}

// A recorder is a program that records its input.
type recorder struct {
	*programtest.Echo
	input *notebook
}

func (p recorder) Stdin() io.WriteCloser { return p.input }

// roundTrip is that of the network.
const roundTrip = 10 * time.Millisecond

var (
	serverAddr = netip.MustParseAddrPort("10.0.0.1:4433")
	clientAddr = netip.MustParseAddr("10.0.0.2")
	intruder   = netip.MustParseAddr("10.0.0.66")
	stranger   = netip.MustParseAddr("10.0.0.77")
)

var serverNetAddr = net.UDPAddrFromAddrPort(serverAddr)

// A host is a machine with a daemon that can be restarted, on virtual time. Its holders
// and its network are in memory.
type host struct {
	t        *testing.T
	net      *netem.Net
	settings *configs.Server
	holders  *holdertest.Holders
	current  *current                    // the holders that the daemon sees
	recheck  func(context.Context) error // see monitor.Config
	logger   *slog.Logger
	log      notebook          // of logger
	program  *programtest.Echo // the latest
	input    notebook          // of all programs
	server   *Daemon
	stop     func()          // ends the daemon
	done     <-chan struct{} // closed when the daemon has ended
	tls      *tls.Config
}

// onHost calls f with a host whose daemon runs.
func onHost(t *testing.T, f func(h *host)) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.log.settle, h.input.settle = synctest.Wait, synctest.Wait
		link := netem.NewLink(netem.Config{Delay: roundTrip / 2}, 1)
		h.net = netem.NewNet(func(_, _ netip.AddrPort) *netem.Link { return link })
		h.serve()
		t.Cleanup(func() {
			h.stop()
			h.holders.Kill()
			h.holders.Wait()
			h.net.Close()
			checkLog(t, h.log.String())
		})
		f(h)
	})
}

// A current is holders that can be replaced.
type current struct {
	atomic.Pointer[processes.Holders]
}

func (c *current) Memory() map[uint32]uint64 { return (*c.Load()).Memory() }

func (c *current) Sessions(uid uint32) []wire.SessionID { return (*c.Load()).Sessions(uid) }

func (c *current) Accounts() []uint32 { return (*c.Load()).Accounts() }

func (c *current) Ask(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message,
) (wire.Message, error) {
	return (*c.Load()).Ask(ctx, uid, id, open, m)
}

func (c *current) Carry(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message, datagrams bool,
) (wire.Message, carrier.Carrier, error) {
	return (*c.Load()).Carry(ctx, uid, id, open, m, datagrams)
}

func (c *current) Await(ctx context.Context, uid uint32, id wire.SessionID) (wire.Message, error) {
	return (*c.Load()).Await(ctx, uid, id)
}

func (c *current) Start(ctx context.Context, a *account.Account, launch *wire.Launch) error {
	return (*c.Load()).Start(ctx, a, launch)
}

func (c *current) Records(ctx context.Context, a *account.Account, launch *wire.Launch) (wire.Message, error) {
	return (*c.Load()).Records(ctx, a, launch)
}

// setHolders replaces the daemon's holders.
func (h *host) setHolders(holders processes.Holders) { h.current.Store(&holders) }

// newHost returns a host without a network and a daemon.
func newHost(t *testing.T) *host {
	h := &host{t: t, settings: configs.DefaultServer(), tls: clientTLS()}
	h.settings.StateDir, h.settings.RuntimeDir = t.TempDir(), t.TempDir()
	h.holders = holdertest.New(func(launch *wire.Launch) holder.Program {
		h.program = programtest.NewEcho(launch.PTY)
		return recorder{h.program, &h.input}
	})
	h.current = new(current)
	h.setHolders(h.holders)
	h.logger = slog.New(slog.NewTextHandler(&h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return h
}

// clientTLS returns the configuration of a client that checks nothing.
func clientTLS() *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true,
		NextProtos:         []string{wire.ALPN},
		ServerName:         auth.ServerName(nil),
		ClientSessionCache: tls.NewLRUClientSessionCache(1),
	}
}

// serve starts a daemon with the keys and the holders of the last one, at serverAddr and perhaps other addresses.
func (h *host) serve(others ...netip.AddrPort) {
	s, err := New(Config{Settings: h.settings, Software: "qtd 1.2", Log: h.logger, Granted: true, Holders: h.current,
		Recheck: h.recheck})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	sockets, done := []net.PacketConn{h.net.Listen(serverAddr)}, make(chan struct{})
	for _, address := range others {
		sockets = append(sockets, h.net.Listen(address))
	}
	go func() {
		defer close(done)
		if err := s.Serve(ctx, sockets...); err != nil {
			h.t.Error(err)
		}
	}()
	h.server, h.done = s, done
	h.stop = func() {
		cancel()
		<-done
	}
	synctest.Wait() // it has asked the sessions that are older
}

// limit restarts the daemon with another max_unauthenticated.
func (h *host) limit(places int) {
	h.stop()
	h.settings.MaxUnauthenticated = places
	h.serve()
}

// attach starts a session, and waits until the client has a TLS ticket.
func (h *host) attach() wire.Attached {
	h.t.Helper()
	c, _, _ := h.dial(quic.Dial, false)
	defer c.Close()
	h.send(c, h.login(&wire.Attach{PTY: true})...)
	var attached wire.Attached
	m, err := wire.Read(c, wire.MaxMessage)
	if err == nil {
		err = m.Decode(&attached)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, ok := h.tls.ClientSessionCache.Get(h.tls.ServerName); ok {
			return attached
		} else if time.Since(start) > patience {
			h.t.Fatal("no TLS ticket")
		}
	}
}

// login returns the messages of a client that has a token and a request.
func (h *host) login(request wire.Body) []wire.Body {
	token, err := h.server.IssueToken(uint32(os.Geteuid()))
	if err != nil {
		h.t.Fatal(err)
	}
	return []wire.Body{&wire.Hello{}, &wire.Token{Token: token}, request}
}

// resume returns the Resume with number n of an attachment.
func resume(a wire.Attached, n uint64) *wire.Resume {
	r := &wire.Resume{UID: a.UID, ID: a.ID, N: n}
	r.Proof = auth.Proof(a.Secret, r.Statement())
	return r
}

// resume sends the Resume with number n of an attachment and then, sealed, frames. It returns
// the carrier for what follows the answer.
func (h *host) resume(c carrier.Carrier, a wire.Attached, n uint64, frames []byte) carrier.Carrier {
	h.t.Helper()
	r := resume(a, n)
	h.send(c, r)
	fromClient, fromHolder := auth.SealKeys(a.Secret, r.Statement())
	lanes := sealed.New(c, fromClient, fromHolder)
	if _, err := lanes.Write(frames); err != nil {
		h.t.Fatal(err)
	}
	return lanes
}

// typed returns a frame of input.
func typed(seq uint64, text string) []byte {
	return buffer.AppendFrame(nil, buffer.Frame{Seq: seq, Type: wire.Stdin, Payload: []byte(text)})
}

// send sends messages in one write.
func (h *host) send(c io.Writer, messages ...wire.Body) {
	h.t.Helper()
	var b []byte
	for _, v := range messages {
		m, err := wire.New(v)
		if err != nil {
			h.t.Fatal(err)
		}
		b = m.Append(b)
	}
	if _, err := c.Write(b); err != nil {
		h.t.Fatal(err)
	}
}

// want reads a message, which must be of the given type.
func (h *host) want(when string, c io.Reader, want wire.Type) {
	h.t.Helper()
	if m, err := wire.Read(c, wire.MaxMessage); err != nil || m.Type != want {
		h.t.Fatalf("%s: message %d, %v; want %d", when, m.Type, err, want)
	}
}

// A tap is a socket that records what it sends. While it is deaf it receives nothing: a
// client then cannot complete the handshake.
type tap struct {
	net.PacketConn
	hearing chan struct{} // closed when it is not deaf

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

type dialFunc func(context.Context, net.PacketConn, netip.AddrPort, *tls.Config) (*quic.Conn, error)

// listen opens a socket of a client.
func (h *host) listen() net.PacketConn { return h.net.Listen(netip.AddrPortFrom(clientAddr, 0)) }

// dial connects to the daemon. A deaf client receives nothing until it calls hear.
func (h *host) dial(dial dialFunc, deaf bool) (c *quic.Conn, t *tap, hear func()) {
	h.t.Helper()
	return h.dialFrom(clientAddr, dial, deaf)
}

// dialFrom is dial from another address.
func (h *host) dialFrom(addr netip.Addr, dial dialFunc, deaf bool) (c *quic.Conn, t *tap, hear func()) {
	h.t.Helper()
	t = &tap{PacketConn: h.net.Listen(netip.AddrPortFrom(addr, 0)), hearing: make(chan struct{})}
	hear = sync.OnceFunc(func() { close(t.hearing) })
	if !deaf {
		hear()
	}
	c, err := dial(context.Background(), t, serverAddr, h.tls)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { hear(); c.Close() })
	return c, t, hear
}

// dialSilent connects from an address, unless the daemon refuses, and sends nothing.
func (h *host) dialSilent(addr netip.Addr) {
	c, err := quic.Dial(context.Background(), h.net.Listen(netip.AddrPortFrom(addr, 0)), serverAddr, clientTLS())
	if err == nil {
		h.t.Cleanup(func() { c.Close() })
	}
}

// wantEarly waits for the end of the handshake: the server must have accepted the early
// data.
func (h *host) wantEarly(c *quic.Conn) {
	h.t.Helper()
	<-c.HandshakeComplete()
	if !c.UsedEarlyData() {
		h.t.Error("the early data was not accepted")
	}
}

// selfName returns the name of the account of this process.
func selfName(t *testing.T) string {
	t.Helper()
	a, err := new(account.NameService).Current(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return a.Name
}
