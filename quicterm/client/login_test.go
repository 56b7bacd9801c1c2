//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A fakeServer is the server of a login, by one transport.
type fakeServer struct {
	connects time.Duration // after the dial; the dial blocks for ever if negative
	answers  time.Duration // after the request; never if negative
	heard    bool          // its transport acknowledges pings
	denies   bool

	dials, open atomic.Int64
}

func (f *fakeServer) dial(ctx context.Context, _ migrate.Candidate) (carrier.Carrier, error) {
	f.dials.Add(1)
	after := time.After(f.connects)
	if f.connects < 0 {
		after = nil
	}
	select {
	case <-after:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.open.Add(1)
	c := &fakeCarrier{server: f}
	c.in, c.answer = io.Pipe()
	return c, nil
}

func (f *fakeServer) redial(ctx context.Context, to migrate.Candidate) (carrier.Carrier, error) {
	return f.dial(ctx, to)
}
func (f *fakeServer) failed(error)       {}
func (f *fakeServer) refused(error) bool { return false }

// A fakeCarrier answers the first flight.
type fakeCarrier struct {
	carrier.Carrier
	server *fakeServer
	in     *io.PipeReader
	answer *io.PipeWriter
	pings  atomic.Uint64
	closed atomic.Bool
}

func (c *fakeCarrier) Write(b []byte) (int, error) {
	if c.server.answers >= 0 {
		go func() {
			time.Sleep(c.server.answers)
			if c.server.denies {
				wire.Send(c.answer, &wire.Denied{})
			} else {
				wire.Send(c.answer, &wire.Listing{})
			}
		}()
	}
	return len(b), nil
}

func (c *fakeCarrier) Read(b []byte) (int, error) { return c.in.Read(b) }
func (c *fakeCarrier) Datagrams() bool            { return true }
func (c *fakeCarrier) SendDatagram([]byte) error  { c.pings.Add(1); return nil }

func (c *fakeCarrier) Stats() carrier.Stats {
	if !c.server.heard {
		return carrier.Stats{}
	}
	return carrier.Stats{PacketsReceived: c.pings.Load()}
}

func (c *fakeCarrier) Close() error {
	if !c.closed.Swap(true) {
		c.server.open.Add(-1)
		c.answer.Close()
	}
	return nil
}

const never = -1

// A login takes the first answer, and tries no more than it has to.
func TestLoginRace(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	server := func(connects, answers time.Duration) *fakeServer {
		return &fakeServer{connects: connects, answers: answers, heard: answers >= 0}
	}
	denying := server(500*ms, 100*ms)
	denying.denies = true
	for _, test := range []struct {
		why       string
		quic, tcp *fakeServer
		took      time.Duration

		quicDials, tcpDials int64
	}{
		{"QUIC is quick", server(100*ms, 100*ms), server(0, 0), 200 * ms, 1, 0},
		{"QUIC is quick, the server slow", server(100*ms, 30*s), server(0, 0), 30*s + 100*ms, 1, 0},
		{"UDP is blocked", server(never, never), server(200*ms, 100*ms), 600 * ms, 2, 1},
		{"QUIC is slow", server(400*ms, 4*s), server(s, 0), 4*s + 400*ms, 1, 1},
		{"UDP is blocked when QUIC has connected", server(100*ms, never), server(200*ms, 100*ms), 2*s + 400*ms, 1, 1},
		{"QUIC is denied", denying, server(s, 0), 600 * ms, 2, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			public, _, err := ed25519.GenerateKey(nil)
			if err != nil {
				t.Fatal(err)
			}
			key, err := ssh.NewPublicKey(public)
			if err != nil {
				t.Fatal(err)
			}
			c := New(Config{
				Resolve:   func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{serverAddr}, nil },
				CheckHost: func(ssh.PublicKey) error { return nil },
				Keys:      []*auth.UserKey{{Public: key}},
			})
			c.dialers[migrate.QUIC], c.dialers[migrate.TCP] = test.quic, test.tcp
			begun := time.Now()
			_, _, err = c.List(t.Context())
			took := time.Since(begun)
			c.Close()
			if denied := errors.As(err, new(*DeniedError)); denied != test.quic.denies || err != nil && !denied {
				t.Errorf("%s: %v", test.why, err)
			}
			if took != test.took || test.quic.dials.Load() != test.quicDials || test.tcp.dials.Load() != test.tcpDials {
				t.Errorf("%s: took %v, %d dials of QUIC and %d of TCP; want %v, %d, %d", test.why,
					took, test.quic.dials.Load(), test.tcp.dials.Load(), test.took, test.quicDials, test.tcpDials)
			}
			synctest.Wait()
			if n := test.quic.open.Load() + test.tcp.open.Load(); n != 0 {
				t.Errorf("%s: %d connections are open", test.why, n)
			}
		})
	}
}

// A tlsCarrier is a connection to a scripted server.
type tlsCarrier struct {
	carrier.Carrier
	*tls.Conn
}

func (c tlsCarrier) Read(b []byte) (int, error)  { return c.Conn.Read(b) }
func (c tlsCarrier) Write(b []byte) (int, error) { return c.Conn.Write(b) }
func (c tlsCarrier) Close() error                { return c.Conn.Close() }
func (c tlsCarrier) TLS() tls.ConnectionState    { return c.ConnectionState() }

// newIdentity returns a key in a file.
func newIdentity(t *testing.T) *auth.UserKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := auth.IdentityFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A client signs its own time first, and the server's, once by each key, for as long as the server asks:
// never a time of the server's as its own. What it signs is for this server, account and connection.
func TestServerAsksForItsTime(t *testing.T) {
	host, err := auth.LoadOrCreateHostKey(filepath.Join(t.TempDir(), "host_key"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: auth.Certificate([]*auth.HostKey{host}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	keys := []*auth.UserKey{newIdentity(t), newIdentity(t)}
	c := New(Config{User: "ann", Keys: keys})
	before := time.Now()
	var times [][]byte
	var signers []int
	served := make(chan error, 1)
	toCome := auth.ClientTime(before.Add(time.Hour))
	go func() {
		served <- func() error {
			accepted, err := listener.Accept()
			if err != nil {
				return err
			}
			defer accepted.Close()
			server := accepted.(*tls.Conn)
			offer := &wire.Offer{Keys: [][]byte{keys[0].Public.Marshal(), keys[1].Public.Marshal()}, Time: toCome}
			for {
				m, err := wire.Read(server, wire.MaxMessage)
				if err != nil {
					return err
				}
				if m.Type != wire.TypeAnswer {
					continue // the Hello and the request
				}
				var answer wire.Answer
				if err := m.Decode(&answer); err != nil {
					return err
				}
				by := slices.IndexFunc(keys, func(k *auth.UserKey) bool { return bytes.Equal(k.Public.Marshal(), answer.Key) })
				exporter, err := auth.Exporter(server.ConnectionState())
				if err != nil {
					return err
				}
				signed := &auth.Statement{Host: auth.HostIDOf(host.Public), Account: "ann", Time: answer.Time, Exporter: exporter}
				if err := signed.Verify(keys[by].Public, answer.Signature, false); err != nil || !bytes.Equal(answer.Host, signed.Host[:]) {
					return fmt.Errorf("answer %+v: %w", answer, err)
				}
				times, signers = append(times, answer.Time), append(signers, by)
				if err := wire.Send(server, offer); err != nil {
					return err
				}
			}
		}()
	}()
	request, err := wire.New(&wire.List{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := tls.Dial("tcp", listener.Addr().String(), auth.VerifyServer(func(ssh.PublicKey) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.authenticate(tlsCarrier{Conn: client}, false, nil, request)
	if !errors.As(err, new(*DeniedError)) {
		t.Error("authenticated:", err)
	}
	client.Close()
	if err := <-served; !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if want := []int{0, 0, 1}; !slices.Equal(signers, want) {
		t.Fatalf("answers by the keys %d, want %d", signers, want)
	}
	clock, offered, err := auth.ParseTime(times[0])
	if err != nil || offered != nil || clock.Before(before.Truncate(time.Second)) || clock.After(time.Now()) {
		t.Errorf("first the time %v %x, %v", clock, offered, err)
	}
	for _, at := range times[1:] {
		if _, offered, err := auth.ParseTime(at); err != nil || !bytes.Equal(offered, toCome) {
			t.Errorf("after an Offer the time %x, %v", at, err)
		}
	}
}
