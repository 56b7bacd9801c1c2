package netmon

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:443")

func TestLookupLoopback(t *testing.T) {
	for _, remote := range []string{"127.0.0.1:443", "[::ffff:127.0.0.1]:443"} {
		route, err := Lookup(netip.MustParseAddrPort(remote), "")
		if err != nil {
			t.Fatal(err)
		}
		if route.Source != loopback.Addr() {
			t.Errorf("to %s from %v", remote, route.Source)
		}
		if i, err := net.InterfaceByName(route.Interface); err != nil || i.Flags&net.FlagLoopback == 0 {
			t.Errorf("to %s through %q: %v", remote, route.Interface, err)
		}
	}
}

func TestLookupFails(t *testing.T) {
	if route, err := Lookup(netip.AddrPort{}, ""); err == nil {
		t.Errorf("the route to no address is %v", route)
	}
	for _, iface := range []string{"qt-no-such", strings.Repeat("x", 100), "a\x00b"} {
		if route, err := Lookup(loopback, iface); err == nil {
			t.Errorf("the route through %q is %v", iface, route)
		} else if !strings.Contains(err.Error(), iface) {
			t.Errorf("error without the interface's name: %v", err)
		}
	}
}

// Sockets can be bound to all that Interfaces returns, if the system permits binding.
func TestInterfaces(t *testing.T) {
	names, err := Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	if len(names) > MaxInterfaces {
		t.Errorf("%d interfaces", len(names))
	}
	for _, name := range names {
		i, err := net.InterfaceByName(name)
		if err != nil || i.Flags&net.FlagLoopback != 0 {
			t.Errorf("%s: %v, %v", name, i, err)
		}
		l := net.ListenConfig{Control: Bind(name)}
		c, err := l.ListenPacket(t.Context(), "udp", ":0")
		if errors.Is(err, ErrBind) {
			t.Logf("%v", err)
		} else if err != nil {
			t.Error(err)
		} else {
			c.Close()
		}
	}
}

func TestBindNothing(t *testing.T) {
	if err := Bind("")("udp", "", nil); err != nil {
		t.Error(err)
	}
}

// sources returns all sources of this system.
func sources(remote netip.AddrPort) map[string]source {
	return map[string]source{
		"notifications": notifications,
		"poll":          poll(func() netip.AddrPort { return remote }, 20*time.Millisecond),
	}
}

// A watch ends with its context, and leaves no goroutine.
func TestWatchEnds(t *testing.T) {
	watches := map[string]func(context.Context) error{
		"Watch": func(ctx context.Context) error {
			return Watch(ctx, func() netip.AddrPort { return loopback }, func(Event) {})
		},
	}
	for name, src := range sources(loopback) {
		watches[name] = func(ctx context.Context) error { return watch(ctx, src, func(Event) {}) }
	}
	for name, watch := range watches {
		t.Run(name, func(t *testing.T) {
			for _, after := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond} {
				before := runtime.NumGoroutine()
				ctx, cancel := context.WithTimeout(t.Context(), after)
				err := watch(ctx)
				if ctx.Err() == nil && errors.Is(err, errors.ErrUnsupported) {
					cancel()
					t.Skip("this system does not notify of changes")
				}
				cancel()
				if err != nil || ctx.Err() == nil {
					t.Errorf("after %v: %v, context %v", after, err, ctx.Err())
				}
				// A goroutine that was joined may not have exited yet.
				deadline := time.Now().Add(5 * time.Second)
				for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
					time.Sleep(time.Millisecond)
				}
				if now := runtime.NumGoroutine(); now > before {
					all := make([]byte, 64<<10)
					t.Errorf("%d goroutines, %d before:\n%s", now, before, all[:runtime.Stack(all, true)])
				}
			}
		})
	}
}

// Snapshots differ exactly if something has changed.
func TestSnapshot(t *testing.T) {
	for tries := 1; ; tries++ { // the network of this machine may change meanwhile
		if a, b := snapshot(loopback), snapshot(loopback); a == b {
			break
		} else if tries == 20 {
			t.Fatalf("the network has changed from %s to %s", a, b)
		}
	}
	if a, b := snapshot(loopback), snapshot(netip.AddrPort{}); a == b {
		t.Errorf("with and without a route: %s", a)
	}
}
