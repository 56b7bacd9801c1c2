//go:build linux || darwin

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/tcp"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/quota"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// patience is how long anything may take on a busy machine.
const patience = 20 * time.Second

// A tcpHost is a host on the loopback interface, in real time. Its daemon listens on TCP only.
type tcpHost struct {
	*host
	addr netip.AddrPort
}

// onTCP returns a host whose daemon runs until the test ends.
func onTCP(t *testing.T, maxUnauthenticated int, change ...func(processes.Holders) processes.Holders) *tcpHost {
	return onTCPBeside(t, func(h *host) { h.settings.MaxUnauthenticated = maxUnauthenticated }, nil, change...)
}

// onTCPBeside is onTCP for settings that set changes, of a daemon that has another task beside, or nil.
func onTCPBeside(
	t *testing.T, set func(*host), beside func(context.Context, *Server) error, change ...func(processes.Holders) processes.Holders,
) *tcpHost {
	h := &tcpHost{host: newHost(t)}
	holders := processes.Holders(h.holders)
	for _, f := range change {
		holders = f(holders)
	}
	set(h.host)
	// killed sessions end in real time
	h.holders.Change = func(launch *wire.Launch) { launch.ExitedTTL = time.Millisecond }
	s, err := New(Config{Settings: h.settings, Log: h.logger, Granted: true, Holders: holders})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	h.server, h.addr = s, l.Addr().(*net.TCPAddr).AddrPort()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	tasks := []func(context.Context) error{func(ctx context.Context) error { return s.ServeTCP(ctx, l) }}
	if beside != nil {
		tasks = append(tasks, func(ctx context.Context) error { return beside(ctx, s.Server) })
	}
	go func() { done <- s.Monitor.Run(ctx, s.Server, tasks...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		h.holders.Kill()
		h.holders.Wait()
	})
	return h
}

// from returns a function that connects from an address.
func from(addr netip.Addr) func(context.Context, string, string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, 0))}
	return d.DialContext
}

var localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// source returns address number n of the loopback interface.
func source(n int) netip.Addr {
	if runtime.GOOS != "linux" { // which has all of 127.0.0.0/8
		return localhost
	}
	return netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)})
}

// tryDial connects to the daemon, which may refuse it.
func (h *tcpHost) tryDial(addr netip.Addr) (*tcp.Conn, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	c, err := tcp.Dial(ctx, from(addr), h.addr, h.tls)
	if err == nil {
		h.t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(patience))
	}
	return c, err
}

func (h *tcpHost) dial(addr netip.Addr) *tcp.Conn {
	h.t.Helper()
	c, err := h.tryDial(addr)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// redial connects to a daemon that refuses clients while it closes many connections.
func (h *tcpHost) redial(addr netip.Addr) *tcp.Conn {
	h.t.Helper()
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		c, err := h.tryDial(addr)
		if err == nil {
			return c
		}
		if !tcp.PeerGone(err) || time.Since(start) > patience {
			h.t.Fatal(err)
		}
	}
}

// plain connects without TLS.
func (h *tcpHost) plain(addr netip.Addr) net.Conn {
	h.t.Helper()
	c, err := from(addr)(h.t.Context(), "tcp", h.addr.String())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// attach starts a session.
func (h *tcpHost) attach() (*tcp.Conn, wire.Attached) {
	h.t.Helper()
	c := h.dial(localhost)
	h.send(c, h.login(&wire.Attach{PTY: true})...)
	var attached wire.Attached
	m, err := wire.Read(c, wire.MaxMessage)
	if err == nil {
		err = m.Decode(&attached)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return c, attached
}

// await waits until the daemon has a number of connections, of which some have not logged in.
func (h *tcpHost) await(connections, unauthenticated int) {
	h.t.Helper()
	var n int64
	var pending int
	for start := time.Now(); time.Since(start) < patience; time.Sleep(5 * time.Millisecond) {
		n = h.server.connections.Load()
		h.server.unauthenticated.mu.Lock()
		pending = h.server.unauthenticated.strangers.Len() + h.server.unauthenticated.others.Len()
		h.server.unauthenticated.mu.Unlock()
		if int(n) == connections && pending == unauthenticated {
			return
		}
	}
	h.t.Fatalf("%d connections, %d of them without a login; want %d and %d", n, pending, connections, unauthenticated)
}

// A client logs in, types, comes back on another connection and types on.
func TestSessionOverTCP(t *testing.T) {
	h := onTCP(t, 64)
	first, attached := h.attach()
	if _, err := first.Write(typed(1, "one,")); err != nil {
		t.Fatal(err)
	}
	h.input.await(t, "one,", 1)
	h.await(1, 0)

	second := h.dial(localhost)
	lanes := h.host.resume(second, attached, 1, typed(2, "two,"))
	h.want("a resume", second, wire.TypeResumed)
	h.input.await(t, "one,two,", 1)
	if _, err := lanes.Write(typed(3, "three,")); err != nil {
		t.Fatal(err)
	}
	h.input.await(t, "one,two,three,", 1)
	first.Close()
	h.await(1, 0)
	second.Close()
	h.await(0, 0)

	listing := h.dial(localhost)
	h.send(listing, h.login(&wire.List{})...)
	h.want("a list", listing, wire.TypeListing)
	if strings.Contains(h.log.String(), "level=WARN") {
		t.Errorf("warnings in the log:\n%s", &h.log)
	}
}

// A denied client gets Denied at a multiple of denyInterval, also when it has ended its side. Then
// the connection ends, as soon as the client closes it.
func TestDenialsOverTCP(t *testing.T) {
	h := onTCP(t, 64)
	for _, test := range []struct {
		name string
		send []wire.Body
		fin  bool
	}{
		{"wrong token", []wire.Body{&wire.Hello{}, &wire.Token{Token: make([]byte, 32)}, &wire.List{}}, false},
		{"no account", []wire.Body{&wire.Hello{User: "no-such-account", Keys: [][]byte{{1}}}, &wire.List{}}, false},
		{"no more messages", []wire.Body{&wire.Hello{}}, true},
	} {
		for tries := 1; ; tries++ { // a busy machine may be slow once
			c := h.dial(localhost)
			start := time.Now()
			h.send(c, test.send...)
			if test.fin {
				c.CloseWrite()
			}
			h.want(test.name, c, wire.TypeDenied)
			if d := time.Since(start); d < denyInterval {
				t.Errorf("%s: denied after %v", test.name, d)
			}
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("%s: after the denial: %v", test.name, err)
			}
			closedAt := time.Now()
			c.Close()
			h.await(0, 0)
			if d := time.Since(closedAt); d < closeTimeout/2 {
				break
			} else if tries == 5 {
				t.Fatalf("%s: the connection lived on for %v", test.name, d)
			}
		}
	}
	c := h.dial(localhost)
	_, attached := h.attach()
	attached.Secret = make([]byte, 32)
	h.send(c, resume(attached, 1))
	h.want("a forged resume", c, wire.TypeDenied)
}

// What does not complete a handshake and a first message is closed within seconds, and costs a
// session and other clients nothing. It fills no log.
func TestJunkOverTCP(t *testing.T) {
	t.Parallel()
	h := onTCP(t, 64)
	session, _ := h.attach()
	junk := make([]byte, 100_000)
	rand.NewChaCha8([32]byte{}).Read(junk)
	hello := clientHello(t)
	var wg sync.WaitGroup
	start := time.Now()
	for name, send := range map[string]func(c net.Conn){
		"nothing":              func(net.Conn) {},
		"random bytes":         func(c net.Conn) { c.Write(junk) },
		"HTTP":                 func(c net.Conn) { c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) },
		"half a ClientHello":   func(c net.Conn) { c.Write(hello[:len(hello)/2]) },
		"a record of no type":  func(c net.Conn) { c.Write([]byte{99, 3, 3, 0, 1, 0}) },
		"a record of 64 KiB":   func(c net.Conn) { c.Write(append([]byte{22, 3, 1, 0xff, 0xff}, junk...)) },
		"a message of 16 MiB":  func(c net.Conn) { c.Write([]byte{22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff}) },
		"a handshake, no more": func(c net.Conn) { tls.Client(c, clientTLS()).HandshakeContext(t.Context()) },
		"slow loris": func(c net.Conn) {
			for i := range hello {
				if _, err := c.Write(hello[i : i+1]); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		},
		"slow first message": func(c net.Conn) {
			client := tls.Client(c, clientTLS())
			if client.HandshakeContext(t.Context()) != nil {
				return
			}
			for {
				if _, err := client.Write([]byte{1}); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		},
	} {
		wg.Go(func() {
			c := h.plain(source(1))
			go send(c)
			if _, err := io.Copy(io.Discard, c); errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if _, err := session.Write(typed(1, "meanwhile,")); err != nil {
		t.Fatal(err)
	}
	h.input.await(t, "meanwhile,", 1)
	wg.Wait()
	if d := time.Since(start); d > firstMessageTimeout+patience/2 {
		t.Errorf("closed after %v, want about %v", d, firstMessageTimeout)
	}
	h.await(1, 0)
	if n := strings.Count(h.log.String(), "level=WARN"); n > 3 { // those that have completed a handshake
		t.Errorf("%d warnings in the log:\n%s", n, &h.log)
	}
}

// clientHello returns the first flight of a client.
func clientHello(t *testing.T) []byte {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go tls.Client(theirs, clientTLS()).HandshakeContext(t.Context())
	b := make([]byte, 64<<10)
	n, err := ours.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// 1000 silent connections of 50 sources keep nobody out, leave few open, and do not disturb
// sessions.
func TestSilentFloodOverTCP(t *testing.T) {
	h := onTCP(t, 64)
	session, attached := h.attach()
	connected := 0
	for n := range 1000 {
		// The last ones of a source are refused, which is an error here if that is fast.
		if c, err := from(source(n%50))(t.Context(), "tcp", h.addr.String()); err == nil {
			t.Cleanup(func() { c.Close() })
			connected++
		}
		if n := h.server.connections.Load(); n > 64+maxClosing {
			t.Fatalf("%d connections", n)
		}
	}
	if connected < 64 {
		t.Fatalf("%d of 1000 have connected: there is no flood", connected)
	}
	for start := time.Now(); h.server.connections.Load() > 64; time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("%d connections stay", h.server.connections.Load())
		}
	}
	again := h.redial(localhost)
	h.host.resume(again, attached, 1, typed(1, "resumed,"))
	h.want("a resume", again, wire.TypeResumed)
	h.input.await(t, "resumed,", 1)
	client := h.redial(source(200))
	h.send(client, h.login(&wire.List{})...)
	h.want("a login from a new source", client, wire.TypeListing)
	session.Close()
	if lines := strings.Count(h.log.String(), "client refused"); lines > deniedBurst+20 {
		t.Errorf("%d lines in the log", lines)
	}
}

// A client whose place another one gets, and one above its rate, learn it at once.
func TestRefusedOverTCP(t *testing.T) {
	h := onTCP(t, 6) // of which 3 may be silent
	first := h.dial(localhost)
	for range 3 {
		h.plain(localhost)
	}
	if _, err := first.Read(make([]byte, 1)); !tcp.PeerGone(err) {
		t.Errorf("the oldest silent client: %v", err)
	}
	later := time.Now().Add(time.Minute) // the bucket stays empty until then
	for range sourceBurst {
		h.server.unauthenticated.sources.Allow(later, quota.Source(localhost))
	}
	if _, err := h.tryDial(localhost); !tcp.PeerGone(err) {
		t.Errorf("a client above its rate: %v", err)
	}
}

// A growingDeaf has holders that are deaf from some time on.
type growingDeaf struct {
	processes.Holders
	now *atomic.Bool
}

func (d growingDeaf) Carry(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message, datagrams bool,
) (wire.Message, carrier.Carrier, error) {
	if d.now.Load() {
		return deaf{d.Holders}.Carry(ctx, uid, id, open, m, datagrams)
	}
	return d.Holders.Carry(ctx, uid, id, open, m, datagrams)
}

// A relay ends soon after its client, also while the holder reads nothing.
func TestRelayOverTCPEndsWithItsClient(t *testing.T) {
	t.Parallel()
	var deafNow atomic.Bool
	h := onTCP(t, 64, func(h processes.Holders) processes.Holders { return growingDeaf{h, &deafNow} })
	first, attached := h.attach()
	deafNow.Store(true)
	c := h.dial(localhost)
	h.host.resume(c, attached, 1, make([]byte, 100))
	h.want("accepted by a deaf holder", c, wire.TypeResumed)
	first.Close()
	h.await(1, 0)
	c.Close()
	h.await(0, 0)
}

// A client has a small window before its login, whatever it sends, and then a larger one if it
// uses it and its account may have that.
func TestWindowsOverTCP(t *testing.T) {
	h := onTCP(t, 64)
	c, _ := h.attach()
	grown := func() uint64 { return h.server.accounts.connections.Taken(uint32(os.Geteuid())) }
	for seq := range uint64(10) {
		if _, err := c.Write(typed(seq+1, "x")); err != nil {
			t.Fatal(err)
		}
	}
	h.input.await(t, "x", 10)
	if n := grown(); n != 0 {
		t.Errorf("the window of a typist has grown by %d bytes", n)
	}
	for seq := uint64(11); grown() == 0; seq++ {
		if _, err := c.Write(typed(seq, strings.Repeat("y", 16<<10))); err != nil {
			t.Fatal(err)
		}
	}
	if n := grown(); n != maxTCPWindow-tcpWindow {
		t.Errorf("the window of an upload has grown by %d bytes", n)
	}
	c.Close()
	h.await(0, 0)
	if n := grown(); n != 0 {
		t.Errorf("%d bytes are left to a connection that has ended", n)
	}
}

// A client that only looks whether a daemon answers is nothing to warn of.
func TestLookOverTCP(t *testing.T) {
	t.Parallel()
	h := onTCP(t, 64)
	c := tls.Client(h.plain(source(1)), clientTLS())
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	h.log.await(t, "client has gone", 1)
	if log := h.log.String(); strings.Contains(log, "level=WARN") || !strings.Contains(log, "level=DEBUG msg=\"client has gone\"") {
		t.Errorf("the log is\n%s", log)
	}
}
