package tcp

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
)

// patience is how long anything may take on a busy machine.
const patience = 20 * time.Second

func TestTCP(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) (a, b carrier.Carrier) { return connect(t, direct) })
}

// direct connects by a plain socket.
func direct(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// testTLS returns the configurations of the two ends.
func testTLS(t testing.TB) (client, server *tls.Config) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	cert, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	client = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"test"}}
	server = &tls.Config{
		NextProtos:   []string{"test"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}},
	}
	return client, server
}

// listen returns the address of a server that calls serve for one connection, and waits for it
// when the test ends.
func listen(t testing.TB, serve func(*net.TCPConn)) netip.AddrPort {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := l.AcceptTCP(); err == nil {
			serve(c)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return addrPort(l.Addr())
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// connect returns the two ends of a carrier.
func connect(t testing.TB, dial dialFunc) (client, server *Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	clientTLS, serverTLS := testTLS(t)
	accepted := make(chan *Conn, 1)
	addr := listen(t, func(c *net.TCPConn) {
		conn := Server(c, serverTLS)
		if err := conn.Handshake(ctx); err != nil {
			t.Error(err)
		}
		accepted <- conn
	})
	client, err := Dial(ctx, dial, addr, clientTLS)
	if err != nil {
		t.Fatal(err)
	}
	server = <-accepted
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestAbilities(t *testing.T) {
	client, server := connect(t, direct)
	near, far := client.TLS(), server.TLS()
	a, err := near.ExportKeyingMaterial("EXPERIMENTAL", []byte("context"), 32)
	if err != nil {
		t.Fatal(err)
	}
	b, err := far.ExportKeyingMaterial("EXPERIMENTAL", []byte("context"), 32)
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("the ends export %x and %x, %v", a, b, err)
	}
	if client.LocalAddr() != server.RemoteAddr() || client.RemoteAddr() != server.LocalAddr() || !client.LocalAddr().IsValid() {
		t.Errorf("addresses: %v to %v, and %v to %v",
			client.LocalAddr(), client.RemoteAddr(), server.LocalAddr(), server.RemoteAddr())
	}
	if _, err := client.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if s := server.Stats(); s.PacketsReceived != 1 || s.BytesReceived != 4 || time.Since(s.LastReceived) > time.Minute {
		t.Errorf("stats of the server: %+v", s)
	}
	if s := client.Stats(); s.PacketsSent != 1 || s.BytesSent != 4 {
		t.Errorf("stats of the client: %+v", s)
	}
}

// CloseWrite ends one direction, and the other still works.
func TestCloseWrite(t *testing.T) {
	client, server := connect(t, direct)
	if _, err := server.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	if err := server.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); string(got) != "last words" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := client.Write([]byte("answer")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(server, make([]byte, 6)); err != nil {
		t.Error(err)
	}
	client.Close()
	if _, err := server.Read(make([]byte, 1)); !PeerGone(err) {
		t.Errorf("after the client has closed: %v", err)
	}
}

// Close does not wait for a peer that reads nothing.
func TestCloseBesideFullStream(t *testing.T) {
	client, _ := connect(t, direct)
	client.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	for {
		if _, err := client.Write(make([]byte, 1<<16)); err != nil {
			break
		}
	}
	start := time.Now()
	client.Close()
	if d := time.Since(start); d > 4*time.Second { // TLS waits 5
		t.Errorf("took %v", d)
	}
}

// A hidden is a connection that may lead through a proxy.
type hidden struct{ net.Conn }

// Of a connection that is no plain socket, the kernel's round trip is not known.
func TestDialWrapped(t *testing.T) {
	client, _ := connect(t, func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := direct(ctx, network, address)
		return hidden{c}, err
	})
	if s := client.Stats(); s.RTT != 0 {
		t.Errorf("round trip %v", s.RTT)
	}
}

// A countingConn counts its writes.
type countingConn struct {
	net.Conn
	writes atomic.Int32
}

func (c *countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// All records of a long write are written together, and arrive whole. An error is for good: TLS takes the records for
// written.
func TestWriteOfManyRecords(t *testing.T) {
	var socket *countingConn
	client, server := connect(t, func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := direct(ctx, network, address)
		socket = &countingConn{Conn: c}
		return socket, err
	})
	sent := make([]byte, 5*maxRecord+1)
	rand.Read(sent)
	for range 3 {
		before := socket.writes.Load()
		written := make(chan error, 1)
		go func() {
			_, err := client.Write(sent)
			written <- err
		}()
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(server, got); err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("other bytes arrive, %v", err)
		}
		if err := <-written; err != nil || socket.writes.Load() != before+1 {
			t.Errorf("%d writes, %v", socket.writes.Load()-before, err)
		}
	}
	client.SetWriteDeadline(time.Now().Add(-time.Second))
	for range 2 {
		if _, err := client.Write(sent); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write after the deadline: %v", err)
		}
		client.SetWriteDeadline(time.Time{})
	}
}

// Both ends insist on TLS 1.3 and on a common protocol.
func TestHandshakeFails(t *testing.T) {
	for name, change := range map[string]func(client, server *tls.Config){
		"old client":             func(client, _ *tls.Config) { client.MaxVersion = tls.VersionTLS12 },
		"old server":             func(_, server *tls.Config) { server.MaxVersion = tls.VersionTLS12 },
		"another protocol":       func(client, _ *tls.Config) { client.NextProtos = []string{"h2"} },
		"client without":         func(client, _ *tls.Config) { client.NextProtos = nil },
		"server without":         func(_, server *tls.Config) { server.NextProtos = nil },
		"server of another name": func(client, _ *tls.Config) { client.InsecureSkipVerify = false; client.ServerName = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			clientTLS, serverTLS := testTLS(t)
			change(clientTLS, serverTLS)
			served := make(chan error, 1)
			addr := listen(t, func(c *net.TCPConn) {
				conn := Server(c, serverTLS)
				defer conn.Close()
				if err := conn.Handshake(ctx); err != nil {
					served <- err
					return
				}
				_, err := conn.Read(make([]byte, 1))
				served <- err
			})
			client, err := Dial(ctx, direct, addr, clientTLS)
			if err == nil { // its handshake ends before the server's: it learns when it reads
				_, err = client.Read(make([]byte, 1))
				client.Close()
			}
			if err == nil || ctx.Err() != nil {
				t.Errorf("client: %v", err)
			}
			if err := <-served; err == nil || ctx.Err() != nil {
				t.Errorf("server: %v", err)
			}
		})
	}
}

// The server gives no tickets.
func TestNoTickets(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	clientTLS, serverTLS := testTLS(t)
	addr := listen(t, func(c *net.TCPConn) {
		conn := Server(c, serverTLS)
		defer conn.Close()
		conn.Handshake(ctx)
		conn.Write([]byte("behind a ticket"))
	})
	cache := &ticketCounter{ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	clientTLS.ClientSessionCache = cache
	socket, err := direct(ctx, "tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	socket.SetDeadline(time.Now().Add(patience))
	io.Copy(io.Discard, tls.Client(socket, clientTLS))
	if cache.tickets != 0 {
		t.Errorf("%d tickets", cache.tickets)
	}
}

type ticketCounter struct {
	tls.ClientSessionCache
	tickets int
}

func (c *ticketCounter) Put(string, *tls.ClientSessionState) { c.tickets++ }

// A dial to what accepts a connection and says nothing ends with its context.
func TestSilentPeer(t *testing.T) {
	done := make(chan struct{})
	addr := listen(t, func(c *net.TCPConn) { <-done; c.Close() })
	defer close(done)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	clientTLS, _ := testTLS(t)
	if _, err := Dial(ctx, direct, addr, clientTLS); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("dial to a silent server: %v", err)
	}
}

// A client that is refused learns it at once.
func TestRefuse(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	clientTLS, _ := testTLS(t)
	addr := listen(t, func(c *net.TCPConn) { Refuse(c) })
	if _, err := Dial(ctx, direct, addr, clientTLS); !PeerGone(err) {
		t.Errorf("a refused dial: %v", err)
	}
}
