package quic_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/quicterm/quicterm/bench/bubble"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
)

// An echoServer sends back everything that it receives, on virtual time.
type echoServer struct {
	net   *netem.Net
	tls   *tls.Config
	doubt bool   // clients must prove that they receive packets at their address
	stop  func() // ends the server without telling the clients
}

const roundTrip = 100 * time.Millisecond

var echoAddr = netip.MustParseAddrPort("10.0.0.2:4433")

func inEchoWorld(t *testing.T, f func(*echoServer)) {
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

// newKeys makes all tickets of the server invalid.
func (e *echoServer) newKeys() {
	var key [32]byte
	rand.Read(key[:])
	e.tls.SetSessionTicketKeys([][32]byte{key})
}

func (e *echoServer) serve(t *testing.T) {
	socket := e.net.Listen(echoAddr)
	listener, err := quic.Listen(socket, quic.ListenConfig{TLS: e.tls, VerifyAddress: func(netip.AddrPort) bool { return e.doubt }})
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
		listener.Close()
		socket.Close()
		wg.Wait()
	}
}

func echo(conn *quic.Incoming) {
	defer conn.Close()
	link, err := conn.Conn(conn.Context())
	if err != nil {
		return
	}
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

type dial func(context.Context, *echoServer, *tls.Config) (*quic.Conn, error)

func full(ctx context.Context, e *echoServer, conf *tls.Config) (*quic.Conn, error) {
	return quic.Dial(ctx, e.net.Listen(netip.MustParseAddrPort("10.0.0.1:0")), echoAddr, conf)
}

func early(ctx context.Context, e *echoServer, conf *tls.Config) (*quic.Conn, error) {
	return quic.DialEarly(ctx, e.net.Listen(netip.MustParseAddrPort("10.0.0.1:0")), echoAddr, conf)
}

// wantEcho dials, exchanges a message on the stream and a datagram, and waits for the server's
// ticket. The answers must take the given number of round trips.
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

// Early data is answered after one round trip, also by a server that was restarted with the
// same keys. A server with other keys rejects it, and accepts a full dial.
func TestEarly(t *testing.T) {
	inEchoWorld(t, func(e *echoServer) {
		conf := clientTLS()
		e.wantEcho(t, "without a ticket", early, conf, 2)
		e.wantEcho(t, "with a ticket", early, conf, 1)
		e.wantEcho(t, "a full dial although there is a ticket", full, conf, 2)

		e.stop()
		e.tls = e.tls.Clone()
		e.serve(t)
		e.wantEcho(t, "with a restarted server", early, conf, 1)

		e.stop()
		e.doubt = true
		e.serve(t)
		// The verification (RFC 9000, 8.1.2) costs a round trip, and the datagram.
		e.wantEcho(t, "with a server that verifies addresses", early, conf, 2)

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
		if _, err := c.Read(make([]byte, 1)); !quic.TicketRejected(err) {
			t.Errorf("read with a ticket of other keys: %v, want a rejected ticket", err)
		}
		if d := time.Since(start); d > roundTrip+roundTrip/4 {
			t.Errorf("rejected after %v, want a round trip", d)
		}
		if _, err := c.Write([]byte("x")); !quic.TicketRejected(err) {
			t.Errorf("write with a ticket of other keys: %v, want a rejected ticket", err)
		}
		c.Close()
		e.wantEcho(t, "full dial with a ticket of other keys", full, conf, 2)
		e.wantEcho(t, "with the ticket of that", early, conf, 1)
	})
}

// Datagrams that are sent while the server's answer arrives wait for the end of the
// handshake. None is lost.
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

// A full dial leaves the ticket unchanged, and any number of dials can use it at once.
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

// Each connection brings a ticket of its own, which replaces the one with which it began: after
// a move that one is not used again.
func TestTicketIsReplaced(t *testing.T) {
	inEchoWorld(t, func(e *echoServer) {
		conf := clientTLS()
		seen := make(map[string]bool)
		for i := range 4 {
			dial, trips := early, time.Duration(1)
			if i == 0 {
				dial, trips = full, 2
			}
			e.wantEcho(t, "connection", dial, conf, trips)
			session, ok := conf.ClientSessionCache.Get(conf.ServerName)
			if !ok {
				t.Fatal("no ticket")
			}
			ticket, _, err := session.ResumptionState()
			if err != nil || seen[string(ticket)] {
				t.Errorf("connection %d leaves a ticket that was used: %v", i+1, err)
			}
			seen[string(ticket)] = true
		}
	})
}

// Ticket keys that are set in the configuration of a listener apply to all later connections.
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
		if _, err := c.Read(make([]byte, 1)); !quic.TicketRejected(err) {
			t.Errorf("a ticket of a forgotten key: %v, want a rejected ticket", err)
		}
	})
}
