package quicterm

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/netmon"
)

// A Network is what a client asks of the machine that it runs on.
type Network interface {
	// Listen opens a UDP socket whose packets leave over an interface, or as
	// the system chooses if its name is empty.
	Listen(iface string) (net.PacketConn, error)
	// Interfaces returns the names of interfaces that may lead to somewhere.
	Interfaces() ([]string, error)
	// Lookup returns how packets to an address would leave.
	Lookup(remote netip.AddrPort, iface string) (netmon.Route, error)
	// Watch tells of changes until the context ends. Remote returns the
	// server's address.
	Watch(ctx context.Context, remote func() netip.AddrPort, f func(netmon.Event)) error
}

// system is the network of the machine.
type system struct{}

func (system) Listen(iface string) (net.PacketConn, error) { return carrier.ListenUDP(iface) }
func (system) Interfaces() ([]string, error)               { return netmon.Interfaces() }
func (system) Lookup(remote netip.AddrPort, iface string) (netmon.Route, error) {
	return netmon.Lookup(remote, iface)
}
func (system) Watch(ctx context.Context, remote func() netip.AddrPort, f func(netmon.Event)) error {
	return netmon.Watch(ctx, remote, f)
}

const (
	// maxRemotes is how many addresses of the server are tried.
	maxRemotes = 4

	// resolveAgain is the time between two requests to resolve its name, and
	// resolveTime how long one may take.
	resolveAgain = 2 * time.Second
	resolveTime  = 10 * time.Second
)

// An atlas knows the ways to a server: its addresses, and the interfaces that
// lead there. The keeper's loop owns it.
type atlas struct {
	client  *Client
	remotes []netip.AddrPort // of the server, best first
	named   []netip.AddrPort // what its name stood for last
	ways    []migrate.Way
	best    atomic.Pointer[netip.AddrPort] // the first of remotes

	resolving bool
	asked     time.Time // when the name was resolved last
	complaint string    // about the interfaces, that was logged last
	unbound   bool      // it was logged that sockets cannot be bound
}

// resolved is the event that the server's name was resolved, or not.
type resolved struct {
	remotes []netip.AddrPort
	err     error
}

// remote returns the server's best address. Any goroutine may ask.
func (a *atlas) remote() netip.AddrPort {
	if p := a.best.Load(); p != nil {
		return *p
	}
	return netip.AddrPort{}
}

// begin returns the way of the connection that there is.
func (a *atlas) begin() migrate.Way {
	a.best.Store(&a.remotes[0])
	way, _ := a.way(a.remotes[0], "")
	return way
}

func (a *atlas) way(remote netip.AddrPort, iface string) (migrate.Way, error) {
	route, err := a.client.network.Lookup(remote, iface)
	return migrate.Way{Remote: remote, Interface: route.Interface, Source: route.Source, Bound: iface != ""}, err
}

// survey looks for the ways that there are, and reports whether they are others
// than before.
func (a *atlas) survey(log *slog.Logger) bool {
	interfaces, err := a.client.network.Interfaces()
	if err != nil && err.Error() != a.complaint {
		a.complaint = err.Error()
		a.complain(log, err)
	}
	if len(interfaces) == 1 {
		interfaces = nil // the system can choose no other
	}
	var ways []migrate.Way
	for _, remote := range a.remotes {
		way, err := a.way(remote, "")
		if err == nil {
			ways = append(ways, way)
		}
		if remote.Addr().IsLoopback() || err == nil && way.Source == remote.Addr() {
			continue // it is this machine: nothing has to leave
		}
		for _, name := range interfaces {
			way, err := a.way(remote, name)
			if err == nil {
				ways = append(ways, way)
			}
			if errors.Is(err, netmon.ErrBind) && !a.unbound {
				a.unbound = true
				a.complain(log, err)
			}
		}
	}
	changed := !slices.Equal(ways, a.ways)
	a.ways = ways
	return changed
}

// complain logs what the network does not let us do.
func (a *atlas) complain(log *slog.Logger, err error) {
	log.Warn("the system chooses the interface: a network that leads nowhere is left later", "error", err)
}

// mayResolve reports whether it is time to resolve the name, and takes note
// that it is done.
func (a *atlas) mayResolve() bool {
	if a.resolving || time.Since(a.asked) < resolveAgain && !a.asked.IsZero() {
		return false
	}
	a.resolving, a.asked = true, time.Now()
	return true
}

// resolve resolves the server's name. It uses nothing of the atlas that changes.
func (a *atlas) resolve(ctx context.Context) resolved {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	remotes, err := a.client.cfg.Resolve(ctx)
	return resolved{remotes, err}
}

// take takes over the addresses of the server, and reports whether they are others
// than before. The one that works stays among them, whatever a name server in a
// strange network says.
func (a *atlas) take(r resolved, works netip.AddrPort, log *slog.Logger) bool {
	a.resolving, a.asked = false, time.Now()
	if r.err != nil || len(r.remotes) == 0 {
		log.Debug("the server's name does not resolve now", "error", r.err)
		return false
	}
	a.named = r.remotes
	remotes := slices.Clone(r.remotes[:min(len(r.remotes), maxRemotes)])
	for _, remote := range slices.Insert(slices.Clone(a.remotes), 0, works) {
		if len(remotes) < maxRemotes+1 && !slices.Contains(remotes, remote) {
			remotes = append(remotes, remote)
		}
	}
	// Name servers change the order each time.
	changed := len(remotes) != len(a.remotes) || slices.ContainsFunc(remotes, func(r netip.AddrPort) bool {
		return !slices.Contains(a.remotes, r)
	})
	a.remotes = remotes
	a.best.Store(&a.remotes[0])
	return changed
}
