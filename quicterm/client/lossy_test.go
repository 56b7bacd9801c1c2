//go:build linux || darwin

package client

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/netem"
)

// Where 30 % of the packets are lost each way, a login takes at most 4 s in 99 of 100 cases: a handshake whose packets
// are lost is not waited for.
func TestLoginAtLoss(t *testing.T) {
	const logins = 1000 // one in a thousand takes longer: a few hundred would fail by chance
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond, Loss: 0.3}, true, func(w *world) {
		w.net.Do(func() { w.noTCP = true })
		var took []time.Duration
		for range logins {
			began := time.Now()
			err := w.listOnce()
			if errors.As(err, new(*BrokenOffError)) { // with a key, the client itself tries once more
				err = w.listOnce()
			}
			if err != nil {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		at := func(percent int) time.Duration { return took[len(took)*percent/100].Round(time.Millisecond) }
		t.Logf("p50 %v, p90 %v, p99 %v, longest %v", at(50), at(90), at(99), took[len(took)-1])
		if at(99) > 4*time.Second {
			t.Errorf("99 %% take up to %v", at(99))
		}
	})
}

// listOnce logs in with a token of its own, and lists the sessions.
func (w *world) listOnce() error {
	c := New(Config{
		Resolve:   func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{serverAddr}, nil },
		CheckHost: func(ssh.PublicKey) error { return nil },
		Network:   w, Token: w.token,
	})
	defer c.Close()
	_, _, err := c.List(context.Background())
	return err
}

// The error of a host that does not answer comes soon.
func TestLoginAtDeadHost(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
		w.net.Do(func() { w.noTCP, w.noUDP = true, true })
		c := New(Config{
			Resolve: func(context.Context) ([]netip.AddrPort, error) {
				return []netip.AddrPort{serverAddr, netip.MustParseAddrPort("[2001:db8::1]:4433")}, nil
			},
			CheckHost: func(ssh.PublicKey) error { return nil },
			Network:   w, Token: Once([]byte("any")),
		})
		began := time.Now()
		var unreachable *UnreachableError
		if _, _, err := c.List(context.Background()); !errors.As(err, &unreachable) || !errors.Is(err, errNoAnswer) {
			t.Errorf("the error is %v", err)
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A port that no program has is told at once: the system there says so.
func TestLoginAtRefusedPort(t *testing.T) {
	addr := netip.MustParseAddrPort("127.0.0.1:1") // which the system gives to no program
	c := New(Config{
		Resolve:   func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{addr}, nil },
		CheckHost: func(ssh.PublicKey) error { return nil },
		Token:     Once([]byte("any")),
	})
	began := time.Now()
	if _, _, err := c.List(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the error is %v", err)
	}
	if took := time.Since(began); took > 2*time.Second { // 0.3 s on an idle machine
		t.Errorf("it took %v", took)
	}
}
