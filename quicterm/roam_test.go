//go:build linux || darwin

package quicterm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An echoClock notes when each byte of output has come.
type echoClock struct {
	mu sync.Mutex
	at []time.Time
}

func (e *echoClock) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range b {
		e.at = append(e.at, time.Now())
	}
	return len(b), nil
}

func (e *echoClock) times() []time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.at)
}

// A program that does not read its input owes no answer: nothing is sought.
func TestInputNotRead(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, false, func(w *world) {
		asleep := make(chan struct{})
		w.program.asleep.Store(&asleep)
		var out bytes.Buffer
		s := w.attach(Streams{Stdout: &out})
		in := make([]byte, 3<<20)
		w.kept.Go(func() {
			s.Write(in)
			s.CloseWrite()
			time.Sleep(10 * time.Second)
			before := w.sockets.Load()
			time.Sleep(10 * time.Minute)
			if n := w.sockets.Load() - before; n > 0 {
				t.Errorf("%d attempts to reach a server that is there", n)
			}
			close(asleep)
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v; want 7", status, err)
		}
		if !bytes.Equal(out.Bytes(), in) {
			t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(in))
		}
	})
}

// After an outage the first attempt to be answered is kept, however many are on
// their way, and its first packets bring what was typed.
func TestOutageOfSlowPath(t *testing.T) {
	for _, delay := range []time.Duration{30 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			inWorld(t, netem.Config{Delay: delay}, true, func(w *world) {
				out := new(echoClock)
				s := w.attach(Streams{Stdout: out})
				w.kept.Go(func() {
					type_ := func(n int) {
						for range n {
							s.Write([]byte("x"))
							time.Sleep(100 * time.Millisecond)
						}
					}
					type_(30)
					w.set(netem.Config{Down: true})
					type_(100)
					w.set(netem.Config{Delay: delay})
					healed := time.Now()
					type_(100)
					for _, at := range out.times() {
						if took := at.Sub(healed); took > 0 {
							if most := 2*delay + 2*100*time.Millisecond; took > most {
								t.Errorf("the first echo took %v, want at most %v", took, most)
							}
							break
						}
					}
					if n := s.Status().Resumed; n != 1 {
						t.Errorf("%d moves, want one", n)
					}
					s.Write([]byte{4})
				})
				s.Run(context.Background())
			})
		})
	}
}

// Nobody waits: hours offline cost few attempts, a round every 10 s.
func TestHoursOffline(t *testing.T) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
		s := w.attach(Streams{Stdout: io.Discard})
		w.kept.Go(func() {
			w.set(netem.Config{Down: true})
			time.Sleep(2 * time.Hour)
			before := w.sockets.Load()
			time.Sleep(10 * time.Minute)
			if n := w.sockets.Load() - before; n > 2*60+2 {
				t.Errorf("%d attempts in ten minutes, want one over each interface every 10 s", n)
			}
			w.set(netem.Config{Delay: 30 * time.Millisecond})
			time.Sleep(20 * time.Second)
			s.Write([]byte{4})
		})
		if status, err := s.Run(context.Background()); status != 7 || err != nil {
			t.Errorf("status %d, %v; want 7", status, err)
		}
	})
}

// With two paths in use, no key is late when the interface of one goes.
func TestRedundantLosesInterface(t *testing.T) {
	for lost, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, true, func(w *world) {
				w.paths = "redundant"
				out := new(echoClock)
				s := w.attach(Streams{Stdout: out})
				w.kept.Go(func() {
					time.Sleep(3 * time.Second)
					var typed []time.Time
					for i := range 500 {
						if i == 100 {
							w.plug(lost, false)
							w.tell(netmon.Changed)
						}
						typed = append(typed, time.Now())
						s.Write([]byte("x"))
						time.Sleep(20 * time.Millisecond)
					}
					time.Sleep(time.Second)
					for i, at := range out.times() {
						if took := at.Sub(typed[i]); took > 70*time.Millisecond {
							t.Errorf("key %d came back after %v", i, took)
						}
					}
					s.Write([]byte{4})
				})
				s.Run(context.Background())
			})
		})
	}
}

// A name may stand for several machines with one key, as that of a cluster. One
// of them has the session; what others say of it counts for little.
func TestRefusalOfAnotherHost(t *testing.T) {
	home, other := netip.MustParseAddrPort("192.0.2.1:4433"), netip.MustParseAddrPort("192.0.2.2:4433")
	for _, test := range []struct {
		why   string
		from  netip.AddrPort
		named []netip.AddrPort
		gone  bool
		wait  bool
	}{
		{"the machine was started anew", home, []netip.AddrPort{home, other}, true, true},
		{"another machine of that name", other, []netip.AddrPort{other, home}, false, false},
		{"the name stands for it now", other, []netip.AddrPort{other}, false, true},
	} {
		s := &Session{attached: wire.Attached{Boot: "ours"}}
		s.changed = sync.NewCond(&s.mu)
		k := &linkKeeper{session: s, home: home, atlas: atlas{named: test.named}}
		from := k.origin(&linkCarrier{remote: test.from})
		s.checkEnd(&refusedError{boot: "other"}, from)
		if s.over != test.gone || s.refused.IsZero() == test.wait {
			t.Errorf("%s: over is %v, in doubt since %v", test.why, s.over, s.refused)
		}
		s.refused = time.Now().Add(-goneAfter - time.Second)
		s.checkEnd(&refusedError{boot: "other"}, from)
		if s.over != test.wait || s.over && !errors.Is(s.cause, ErrGone) {
			t.Errorf("%s, for minutes: over is %v, %v", test.why, s.over, s.cause)
		}
	}
}

// However often and to what the name resolves, the address that works is tried.
func TestAddressThatWorksIsKept(t *testing.T) {
	addr := func(i byte) netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, i}), 4433) }
	works := addr(1)
	a := &atlas{remotes: []netip.AddrPort{works}}
	log := slog.New(slog.DiscardHandler)
	for i := byte(10); i < 100; i += 8 {
		var named []netip.AddrPort
		for j := range byte(8) {
			named = append(named, addr(i+j))
		}
		if !a.take(resolved{remotes: named}, works, log) {
			t.Errorf("other addresses, which are not told: %v", a.remotes)
		}
		if !slices.Contains(a.remotes, works) || len(a.remotes) > maxRemotes+1 {
			t.Fatalf("tries %v, want up to %d with %v", a.remotes, maxRemotes+1, works)
		}
		slices.Reverse(named[:maxRemotes])
		if a.take(resolved{remotes: named}, works, log) {
			t.Error("the same in another order counts as a change")
		}
	}
}

func TestThisMachineIsNotSoughtOutside(t *testing.T) {
	here := netip.MustParseAddrPort("10.0.0.2:4433")
	a := &atlas{client: &Client{network: bindable{}}, remotes: []netip.AddrPort{netip.MustParseAddrPort("[::1]:4433"), here, serverAddr}}
	a.survey(slog.New(slog.DiscardHandler))
	for _, w := range a.ways {
		if w.Bound != (w.Remote == serverAddr && w.Interface != "lo") {
			t.Errorf("there is a way %+v", w)
		}
	}
	if len(a.ways) != 5 {
		t.Errorf("%d ways, want one to each address of this machine and three to another", len(a.ways))
	}
}

// A machine with a route to everything through all of its interfaces, as Linux has
// it for sockets that are bound.
type bindable struct{ Network }

func (bindable) Interfaces() ([]string, error) { return []string{"wlan0", "wwan0"}, nil }
func (bindable) Lookup(remote netip.AddrPort, iface string) (netmon.Route, error) {
	if iface == "" {
		source := remote.Addr()
		if remote == serverAddr {
			source = netip.MustParseAddr("10.0.0.2")
		}
		return netmon.Route{Interface: "lo", Source: source}, nil
	}
	return netmon.Route{Interface: iface, Source: netip.MustParseAddr("10.0.0.2")}, nil
}

// A machine without permission to bind.
type unbindable struct{ Network }

func (unbindable) Interfaces() ([]string, error) { return []string{"wlan0", "wwan0"}, nil }
func (unbindable) Lookup(_ netip.AddrPort, iface string) (netmon.Route, error) {
	if iface != "" {
		return netmon.Route{}, errors.Join(errors.New(iface), netmon.ErrBind)
	}
	return netmon.Route{Interface: "wlan0", Source: netip.MustParseAddr("10.0.0.2")}, nil
}

func TestComplainOnce(t *testing.T) {
	var log strings.Builder
	a := &atlas{client: &Client{network: unbindable{}}, remotes: []netip.AddrPort{serverAddr}}
	for range 10 {
		a.survey(slog.New(slog.NewTextHandler(&log, nil)))
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || len(a.ways) != 1 {
		t.Errorf("%d lines, %d ways, want one of each:\n%s", n, len(a.ways), log.String())
	}
}
