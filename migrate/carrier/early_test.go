package carrier_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate/carrier"
)

// An echoServer answers everything with itself, on virtual time.
type echoServer struct {
	net   *netem.Net
	tls   *tls.Config
	doubt bool   // clients have to show that their address is theirs
	stop  func() // as by a kill
}

const roundTrip = 100 * time.Millisecond

var echoAddr = netip.MustParseAddrPort("10.0.0.2:4433")

func inEchoWorld(t *testing.T, f func(*echoServer)) {
	// On more processors the race detector crashes where timers of a bubble end.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		link := netem.NewLink(netem.Config{Delay: roundTrip / 2}, 1)
		e := &echoServer{
			net: netem.NewNet(func(_, _ netip.AddrPort) *netem.Link { return link }),
			tls: serverTLS(t),
		}
		defer e.net.Close()
		e.newKeys()
		e.serve(t)
		f(e)
		e.stop()
	})
}

// newKeys has the server forget all tickets that it has given out.
func (e *echoServer) newKeys() {
	var key [32]byte
	rand.Read(key[:])
	e.tls.SetSessionTicketKeys([][32]byte{key})
}

func (e *echoServer) serve(t *testing.T) {
	socket := e.net.Listen(echoAddr)
	transport := &quic.Transport{Conn: socket, VerifySourceAddress: func(net.Addr) bool { return e.doubt }}
	listener, err := transport.ListenEarly(e.tls, carrier.ServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept(context.Background())
			if err != nil {
				return
			}
			wg.Go(func() { echo(conn) })
		}
	})
	e.stop = func() {
		transport.Close()
		socket.Close()
		wg.Wait()
	}
}

func echo(conn *quic.Conn) {
	defer conn.CloseWithError(0, "")
	stream, err := conn.AcceptStream(conn.Context())
	if err != nil {
		return
	}
	link := carrier.AcceptQUIC(conn, stream)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for {
			b, err := link.ReceiveDatagram()
			if err != nil || link.SendDatagram(b) != nil {
				return
			}
		}
	})
	b := make([]byte, 100)
	for {
		n, err := link.Read(b)
		if err != nil {
			break
		}
		link.Write(b[:n])
	}
	link.Close()
}

type dial func(context.Context, *echoServer, *tls.Config) (*carrier.QUIC, error)

func full(ctx context.Context, e *echoServer, conf *tls.Config) (*carrier.QUIC, error) {
	return carrier.DialQUIC(ctx, e.net.Listen(netip.MustParseAddrPort("10.0.0.1:0")), echoAddr, conf)
}

func early(ctx context.Context, e *echoServer, conf *tls.Config) (*carrier.QUIC, error) {
	return carrier.DialQUICEarly(ctx, e.net.Listen(netip.MustParseAddrPort("10.0.0.1:0")), echoAddr, conf)
}

// wantEcho dials, has the stream and a datagram echoed, and waits until the
// server's ticket has come. It must take as many round trips as given.
func (e *echoServer) wantEcho(t *testing.T, why string, dial dial, conf *tls.Config, trips time.Duration) {
	t.Helper()
	start := time.Now()
	took := func(what string) {
		if d := time.Since(start); d < trips*roundTrip || d > trips*roundTrip+roundTrip/4 {
			t.Errorf("%s: %s after %v, want %d round trips of %v", why, what, d, trips, roundTrip)
		}
	}
	c, err := dial(context.Background(), e, conf)
	if err != nil {
		t.Fatalf("%s: %v", why, err)
	}
	defer c.Close()
	if !c.Datagrams() {
		t.Errorf("%s: no datagrams", why)
	}
	if _, err := c.Write([]byte("stream")); err != nil {
		t.Fatalf("%s: %v", why, err)
	}
	if err := c.SendDatagram([]byte("datagram")); err != nil {
		t.Fatalf("%s: %v", why, err)
	}
	b := make([]byte, 100)
	n, err := c.Read(b)
	if err != nil || string(b[:n]) != "stream" {
		t.Fatalf("%s: %q, %v", why, b[:n], err)
	}
	took("stream")
	if e.doubt {
		return
	}
	if b, err = c.ReceiveDatagram(); err != nil || string(b) != "datagram" {
		t.Fatalf("%s: %q, %v", why, b, err)
	}
	took("datagram")
	time.Sleep(2 * roundTrip)
}

// Early data is answered after one round trip, also by a server that was started
// anew with the same keys. One with others rejects it, and takes a full dial.
func TestEarly(t *testing.T) {
	inEchoWorld(t, func(e *echoServer) {
		conf := clientTLS()
		e.wantEcho(t, "without a ticket", early, conf, 2)
		e.wantEcho(t, "with a ticket", early, conf, 1)
		e.wantEcho(t, "a full dial in spite of it", full, conf, 2)

		e.stop()
		e.tls = e.tls.Clone()
		e.serve(t)
		e.wantEcho(t, "restarted", early, conf, 1)

		e.stop()
		e.doubt = true
		e.serve(t)
		// Its question (RFC 9000, 8.1.2) costs a round trip, and the datagram.
		e.wantEcho(t, "by a server that asks for a valid address", early, conf, 2)

		e.stop()
		e.doubt = false
		e.newKeys()
		e.serve(t)
		start := time.Now()
		c, err := early(context.Background(), e, conf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		c.SendDatagram([]byte("x"))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, quic.Err0RTTRejected) {
			t.Errorf("read with a ticket of other keys: %v, want quic.Err0RTTRejected", err)
		}
		if d := time.Since(start); d > roundTrip+roundTrip/4 {
			t.Errorf("rejected after %v, want a round trip", d)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, quic.Err0RTTRejected) {
			t.Errorf("write with a ticket of other keys: %v, want quic.Err0RTTRejected", err)
		}
		c.Close()
		e.wantEcho(t, "full dial with a ticket of other keys", full, conf, 2)
		e.wantEcho(t, "with the ticket of that", early, conf, 1)
	})
}

// Datagrams that are sent while the server's answer comes wait for the end of the
// handshake; none is lost.
func TestDatagramsAcrossHandshake(t *testing.T) {
	inEchoWorld(t, func(e *echoServer) {
		conf := clientTLS()
		e.wantEcho(t, "without a ticket", full, conf, 2)
		c, err := early(context.Background(), e, conf)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		const datagrams = 60
		go func() {
			for i := range datagrams {
				c.SendDatagram([]byte{byte(i)})
				time.Sleep(4 * roundTrip / datagrams)
			}
		}()
		seen := make(map[byte]bool)
		for range datagrams {
			b, err := c.ReceiveDatagram()
			if err != nil {
				t.Fatal(err)
			}
			seen[b[0]] = true
		}
		if len(seen) != datagrams {
			t.Errorf("%d datagrams came back, want %d", len(seen), datagrams)
		}
	})
}

// A full dial leaves the ticket as it was, and any number of dials can use it at
// once.
func TestTicketIsShared(t *testing.T) {
	inEchoWorld(t, func(e *echoServer) {
		conf := clientTLS()
		e.wantEcho(t, "without a ticket", full, conf, 2)
		ctx, cancel := context.WithTimeout(context.Background(), roundTrip/4)
		defer cancel()
		if _, err := full(ctx, e, conf); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				c, err := early(context.Background(), e, conf)
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				start := time.Now()
				c.Write([]byte("x"))
				if _, err := c.Read(make([]byte, 1)); err != nil || time.Since(start) > roundTrip {
					t.Errorf("%v, after %v", err, time.Since(start))
				}
			})
		}
		wg.Wait()
	})
}

// Connections that are made after ticket keys were set in the configuration that
// a listener has know them.
func TestRotatedKeys(t *testing.T) {
	inEchoWorld(t, func(e *echoServer) {
		var first, second [32]byte
		rand.Read(first[:])
		rand.Read(second[:])
		conf := clientTLS()
		e.tls.SetSessionTicketKeys([][32]byte{first})
		e.wantEcho(t, "first", full, conf, 2)
		e.tls.SetSessionTicketKeys([][32]byte{second, first})
		e.wantEcho(t, "a ticket of the key before", early, conf, 1)
		e.tls.SetSessionTicketKeys([][32]byte{second})
		e.wantEcho(t, "a ticket of the key after", early, conf, 1)
		e.newKeys()
		c, err := early(context.Background(), e, conf)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte("x"))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, quic.Err0RTTRejected) {
			t.Errorf("a ticket of a forgotten key: %v, want quic.Err0RTTRejected", err)
		}
	})
}
