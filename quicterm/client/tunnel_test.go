//go:build linux || darwin

package client

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// overTunnel makes the client begin with the tunnel, and learn the address of the daemon by it.
func (w *world) overTunnel(cfg *Config) {
	cfg.Tunnel, cfg.TunnelFirst, cfg.Token = tunnel{w}, true, nil
	cfg.Resolve = func(ctx context.Context) ([]netip.AddrPort, error) {
		if w.logins.Load() == 0 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return []netip.AddrPort{serverAddr}, nil
	}
}

// inUse returns the transports of the paths of a session.
func inUse(s *Session) (transports []migrate.Transport) {
	for _, p := range s.Status().Paths {
		transports = append(transports, migrate.Transport(p.Transport))
	}
	return transports
}

func wantTransport(t *testing.T, why string, s *Session, want migrate.Transport) {
	t.Helper()
	if got := inUse(s); len(got) != 1 || got[0] != want {
		t.Errorf("%s: the paths are %v, want one of %v", why, got, want)
	}
}

// typeKeys types keys, and checks that all come back, each within a time.
func typeKeys(t *testing.T, s *Session, out *echoClock, n int, every, within time.Duration) {
	t.Helper()
	before := len(out.times())
	var typed []time.Time
	for range n {
		typed = append(typed, time.Now())
		s.Write([]byte("x"))
		time.Sleep(every)
	}
	time.Sleep(within)
	echoes := out.times()[before:]
	if len(echoes) != n {
		t.Errorf("%d echoes of %d keys", len(echoes), n)
		return
	}
	for i, at := range echoes {
		if took := at.Sub(typed[i]); took > within {
			t.Errorf("key %d came back after %v, want at most %v", i, took, within)
		}
	}
}

const trip = 100 * time.Millisecond

// A session begins over the tunnel, at once, and moves to QUIC without a sign.
func TestTunnelFirst(t *testing.T) {
	inWorld(t, netem.Config{Delay: trip / 2}, true, func(w *world) {
		w.config = w.overTunnel
		out := new(echoClock)
		begun := time.Now()
		s := w.attach(Streams{Stdout: out})
		if took := time.Since(begun); took > sshLogin+2*trip+10*time.Millisecond || s.first.transport != migrate.SSH {
			t.Errorf("the prompt took %v over %v, want the login, and a round trip", took, s.first.transport)
		}
		w.kept.Go(func() {
			typeKeys(t, s, out, 100, 20*time.Millisecond, trip+20*time.Millisecond)
			if got := inUse(s); len(got) != 2 || got[1] != migrate.QUIC {
				t.Errorf("the paths are %v, want QUIC beside the tunnel", got)
			}
			time.Sleep(10 * time.Second)
			wantTransport(t, "later", s, migrate.QUIC)
			if n := w.net.Streams(); n != 0 {
				t.Errorf("%d ends of the tunnel are open", n)
			}
			s.Write([]byte{4})
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
		if n := w.logins.Load(); n != 1 {
			t.Errorf("%d logins", n)
		}
	})
}

// Where nothing else passes, a session stays on the tunnel, and makes another one when it dies.
func TestOnlyTunnel(t *testing.T) {
	inWorld(t, netem.Config{Delay: trip / 2}, true, func(w *world) {
		w.config, w.noUDP, w.noTCP = w.overTunnel, true, true
		out := new(echoClock)
		s := w.attach(Streams{Stdout: out})
		w.kept.Go(func() {
			typeKeys(t, s, out, 1000, 50*time.Millisecond, trip+10*time.Millisecond)
			wantTransport(t, "UDP is blocked", s, migrate.SSH)
			w.move(0) // the tunnel is dead
			w.tell(0)
			typeKeys(t, s, out, 10, 50*time.Millisecond, 6*time.Second)
			wantTransport(t, "another login", s, migrate.SSH)
			time.Sleep(time.Hour)
			typeKeys(t, s, out, 10, 50*time.Millisecond, trip+10*time.Millisecond)
			s.Write([]byte{4})
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
		if n := w.logins.Load(); n != 2 {
			t.Errorf("%d logins, want two", n)
		}
	})
}

// A name that does not resolve at first is resolved again.
func TestTunnelResolvesLater(t *testing.T) {
	inWorld(t, netem.Config{Delay: trip / 2}, true, func(w *world) {
		begun := time.Now()
		w.config = func(cfg *Config) {
			w.overTunnel(cfg)
			resolve := cfg.Resolve
			cfg.Resolve = func(ctx context.Context) ([]netip.AddrPort, error) {
				if time.Since(begun) < time.Minute {
					return nil, errors.New("no name server")
				}
				return resolve(ctx)
			}
		}
		s := w.attach(Streams{})
		w.kept.Go(func() {
			time.Sleep(time.Minute)
			wantTransport(t, "the name does not resolve", s, migrate.SSH)
			time.Sleep(time.Minute)
			wantTransport(t, "it does", s, migrate.QUIC)
			s.Write([]byte{4})
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
	})
}

// The tunnel is used beside the direct way if that does not answer soon, or does not let us in,
// and not if it does.
func TestTunnelBesideDirect(t *testing.T) {
	for _, test := range []struct {
		why    string
		config func(w *world, cfg *Config)
		want   migrate.Transport
		logins int64
		most   time.Duration
	}{
		{"the daemon answers", func(*world, *Config) {}, migrate.QUIC, 0, 3 * trip},
		{"nobody answers", func(w *world, _ *Config) { w.noUDP, w.noTCP = true, true }, migrate.SSH, 1, loginPing + sshLogin + 3*trip},
		{"the daemon denies", func(_ *world, cfg *Config) { cfg.Token = Once([]byte("wrong")) }, migrate.SSH, 1, sshLogin + 7*trip},
		{"there is no key", func(_ *world, cfg *Config) { cfg.Token = nil }, migrate.SSH, 1, sshLogin + 3*trip},
		{"its key is not known", func(_ *world, cfg *Config) {
			cfg.CheckHost = func(ssh.PublicKey) error { return &auth.UnknownHostError{} }
		}, migrate.SSH, 1, sshLogin + 5*trip},
	} {
		inWorld(t, netem.Config{Delay: trip / 2}, true, func(w *world) {
			w.config = func(cfg *Config) {
				cfg.Tunnel = tunnel{w}
				test.config(w, cfg)
			}
			begun := time.Now()
			s := w.attach(Streams{})
			if took := time.Since(begun); took > test.most || s.first.transport != test.want || w.logins.Load() != test.logins {
				t.Errorf("%s: attached over %v after %v with %d logins; want %v, %v, %d",
					test.why, s.first.transport, took, w.logins.Load(), test.want, test.most, test.logins)
			}
			s.Leave()
			s.Run(context.Background())
			w.program.Signal(0)
		})
	}
}

// A key that has changed ends the login: ssh is no way round that.
func TestTunnelNotBesideAttack(t *testing.T) {
	inWorld(t, netem.Config{Delay: trip / 2}, true, func(w *world) {
		w.config = func(cfg *Config) {
			cfg.Tunnel = tunnel{w}
			cfg.CheckHost = func(ssh.PublicKey) error { return &auth.ChangedHostError{} }
		}
		var changed *auth.ChangedHostError
		if _, err := w.tryAttach(&wire.Attach{}, Streams{}); !errors.As(err, &changed) || w.logins.Load() != 0 {
			t.Errorf("%v, %d logins", err, w.logins.Load())
		}
	})
}

// A tunnel that fails is explained.
func TestTunnelFails(t *testing.T) {
	for _, first := range []bool{true, false} {
		inWorld(t, netem.Config{Delay: trip / 2}, true, func(w *world) {
			w.noUDP, w.noTCP = true, true
			w.config = func(cfg *Config) { cfg.Tunnel, cfg.TunnelFirst = brokenTunnel{}, first }
			var tunnel *TunnelError
			begun := time.Now()
			_, err := w.tryAttach(&wire.Attach{}, Streams{})
			if !errors.As(err, &tunnel) || !errors.Is(err, errBroken) || first && time.Since(begun) > 0 {
				t.Errorf("the tunnel first is %v: %v after %v", first, err, time.Since(begun))
			}
		})
	}
}

var errBroken = errors.New("no such program")

type brokenTunnel struct{}

func (brokenTunnel) Dial(context.Context, bool) (carrier.Carrier, error) { return nil, errBroken }
