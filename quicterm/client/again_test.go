//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The connection is lost when the session has started and before the client knows. The
// client notices, asks again, and gets that session.
func TestAttachAgain(t *testing.T) {
	for name, mode := range map[string]wire.Mode{"new": wire.ModeCreate, "named": wire.ModeAttachOrCreate} {
		inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, false, func(w *world) {
			req := &wire.Attach{Mode: mode}
			if mode == wire.ModeAttachOrCreate {
				req.Session = "named"
			}
			w.starting = func() { w.set(netem.Config{Down: true}) }
			start := time.Now()
			_, err := w.tryAttach(req, Streams{})
			var brokenOff *BrokenOffError
			if noticed := time.Since(start); !errors.As(err, &brokenOff) || noticed > 10*time.Second {
				t.Fatalf("%s: %v after %v, want to notice it in 10 s", name, err, noticed)
			}
			w.set(netem.Config{Delay: 30 * time.Millisecond})
			var out bytes.Buffer
			s, err := w.tryAttach(req, Streams{Stdout: &out})
			if err != nil {
				t.Fatalf("%s: asked again: %v", name, err)
			}
			if n := len(w.holders.Sessions(0)); n != 1 || !s.Created() {
				t.Errorf("%s: %d sessions, created is %v; want one that is", name, n, s.Created())
			}
			w.kept.Go(func() {
				s.Write([]byte("typed"))
				s.CloseWrite()
			})
			if status, err := s.Run(context.Background()); status != 7 || err != nil || out.String() != "typed" {
				t.Errorf("%s: status %d, %v, output %q", name, status, err, out.String())
			}
		})
	}
}

// A server that takes long to start a session is waited for, over the connection on which it
// was asked.
func TestAttachToSlowServer(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, false, func(w *world) {
		w.starting = func() { time.Sleep(80 * time.Second) }
		var out bytes.Buffer
		s := w.attach(Streams{Stdout: &out})
		if n := w.sockets.Load(); n != 1 {
			t.Errorf("%d connections, want one", n)
		}
		s.CloseWrite()
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
	})
}

// What an Error means is the same in place of Attached and of Resumed.
func TestRefusedBy(t *testing.T) {
	var withdrawn *WithdrawnError
	if err := refusedBy(&wire.Error{Code: wire.CodeWithdrawn, Text: "why"}); !errors.As(err, &withdrawn) || withdrawn.Reason != "why" {
		t.Errorf("withdrawn: %v", err)
	}
	var displaced *DisplacedError
	if err := refusedBy(&wire.Error{Code: wire.CodeDisplaced, Text: "who"}); !errors.As(err, &displaced) || displaced.By != "who" {
		t.Errorf("displaced: %v", err)
	}
	var other *wire.Error
	if err := refusedBy(&wire.Error{Code: wire.CodeNoSession}); !errors.As(err, &other) || other.Code != wire.CodeNoSession {
		t.Errorf("no session: %v", err)
	}
}

// errRefused stands for the error of a connection that a busy server has ended.
var errRefused = errors.New("refused")

// A refusedDialer dials a server that ends each connection when the client has logged in.
type refusedDialer struct{ dialer }

func (d refusedDialer) dial(ctx context.Context, to migrate.Candidate) (carrier.Carrier, error) {
	c, err := d.dialer.dial(ctx, to)
	return refusedCarrier{c}, err
}

func (refusedDialer) refused(err error) bool { return errors.Is(err, errRefused) }

type refusedCarrier struct{ carrier.Carrier }

func (refusedCarrier) Read([]byte) (int, error) { return 0, errRefused }

// A server that ends the connection because it is busy is called so, and the client still
// knows that it may have done what it was asked.
func TestBusyServerBreaksOff(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, false, func(w *world) {
		c := New(Config{
			Resolve:   func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{serverAddr}, nil },
			Network:   w,
			CheckHost: func(ssh.PublicKey) error { return nil },
			Token:     Once([]byte("any")),
		})
		defer c.Close()
		c.dialers[migrate.QUIC] = refusedDialer{c.dialers[migrate.QUIC]}
		var brokenOff *BrokenOffError
		if _, _, err := c.List(context.Background()); !errors.Is(err, ErrBusy) || !errors.As(err, &brokenOff) {
			t.Errorf("the error is %v", err)
		}
	})
}
