//go:build linux || darwin

package client

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net/netip"
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
func (c *fakeCarrier) ExportKeyingMaterial(string, []byte, int) ([]byte, error) {
	return make([]byte, 32), nil
}

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
		tcpDials  int64
	}{
		{"QUIC is quick", server(100*ms, 100*ms), server(0, 0), 200 * ms, 0},
		{"QUIC is quick, the server slow", server(100*ms, 30*s), server(0, 0), 30*s + 100*ms, 0},
		{"UDP is blocked", server(never, never), server(200*ms, 100*ms), 600 * ms, 1},
		{"QUIC is slow", server(400*ms, 4*s), server(s, 0), 4*s + 400*ms, 1},
		{"UDP is blocked when QUIC has connected", server(100*ms, never), server(200*ms, 100*ms), 2*s + 400*ms, 1},
		{"QUIC is denied", denying, server(s, 0), 600 * ms, 1},
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
			if denied := errors.As(err, new(*DeniedError)); denied != test.quic.denies || err != nil && !denied {
				t.Errorf("%s: %v", test.why, err)
			}
			if took != test.took || test.quic.dials.Load() != 1 || test.tcp.dials.Load() != test.tcpDials {
				t.Errorf("%s: took %v, %d dials of QUIC and %d of TCP; want %v, 1, %d", test.why,
					took, test.quic.dials.Load(), test.tcp.dials.Load(), test.took, test.tcpDials)
			}
			synctest.Wait()
			if n := test.quic.open.Load() + test.tcp.open.Load(); n != 0 {
				t.Errorf("%s: %d connections are open", test.why, n)
			}
		})
	}
}
