package client

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/migrate/netmon"
)

// maxAddresses is how many addresses of the server are tried.
const maxAddresses = 4

// candidates are all ways to a server that there are: its addresses, over each interface that
// leads there and by each transport, and the tunnel. The roamer's loop owns them.
type candidates struct {
	client *Client
	addrs  []netip.AddrPort               // of the server, best first
	named  []netip.AddrPort               // that its name stood for last
	best   atomic.Pointer[netip.AddrPort] // the first of addrs
	list   []migrate.Candidate

	resolving  bool
	resolvedAt time.Time // when the name was resolved last, or that was begun
	logged     string    // the last error about interfaces that was logged
	loggedBind bool      // it was logged that sockets cannot be bound to an interface
}

// resolved is the event that resolving the server's name has ended.
type resolved struct {
	addrs []netip.AddrPort
	err   error
}

// bestAddr returns the server's best address. Any goroutine may call it.
func (c *candidates) bestAddr() netip.AddrPort {
	if p := c.best.Load(); p != nil {
		return *p
	}
	return netip.AddrPort{}
}

// start begins with the address of a connection that exists, and returns its candidate.
func (c *candidates) start(t migrate.Transport, addr netip.AddrPort) migrate.Candidate {
	c.addrs = []netip.AddrPort{addr}
	c.named = c.addrs
	c.best.Store(&addr)
	first, _ := c.lookup(addr, "") // without a route, the interface is not known
	first.Transport = t
	return first
}

// lookup returns the candidate of QUIC for an address over an interface.
func (c *candidates) lookup(addr netip.AddrPort, iface string) (migrate.Candidate, error) {
	route, err := c.client.network.Lookup(addr, iface)
	return migrate.Candidate{Remote: addr, Interface: route.Interface, Source: route.Source, Bound: iface != ""}, err
}

// withOtherTransports adds the candidates of TCP and the tunnel to those of QUIC, which it removes where there is no UDP.
func (c *candidates) withOtherTransports(list []migrate.Candidate) []migrate.Candidate {
	quic := list
	if c.client.cfg.NoUDP {
		list = nil
	}
	for _, candidate := range quic {
		candidate.Transport = migrate.TCP
		list = append(list, candidate)
	}
	if c.client.dialers[migrate.SSH] != nil {
		list = append(list, migrate.Candidate{Transport: migrate.SSH})
	}
	return list
}

// refresh looks up which candidates there are now, and reports whether they have changed.
func (c *candidates) refresh(log *slog.Logger) bool {
	interfaces, err := c.client.network.Interfaces()
	if err != nil && err.Error() != c.logged {
		c.logged = err.Error()
		logInterfaces(log, err)
	}
	if len(interfaces) == 1 {
		interfaces = nil // the system can choose no other
	}
	var list []migrate.Candidate
	for _, addr := range c.addrs {
		candidate, err := c.lookup(addr, "")
		if err == nil {
			list = append(list, candidate)
		}
		if addr.Addr().IsLoopback() || err == nil && candidate.Source == addr.Addr() {
			continue // it is this machine: packets leave over no interface
		}
		for _, name := range interfaces {
			candidate, err := c.lookup(addr, name)
			if err == nil {
				list = append(list, candidate)
			}
			if errors.Is(err, netmon.ErrBind) && !c.loggedBind {
				c.loggedBind = true
				logInterfaces(log, err)
			}
		}
	}
	list = c.withOtherTransports(list)
	changed := !slices.Equal(list, c.list)
	c.list = list
	return changed
}

// logInterfaces logs why interfaces cannot be listed or bound to, and what follows from it.
func logInterfaces(log *slog.Logger, err error) {
	log.Warn("the system chooses the interface: a network that leads nowhere is left later", "error", err)
}

// mayResolve reports whether it is time to resolve the server's name again.
func (c *candidates) mayResolve() bool {
	return !c.resolving && (c.resolvedAt.IsZero() || time.Since(c.resolvedAt) >= patience)
}

// startResolve returns a function that resolves the server's name, for another goroutine. The
// result is for endResolve.
func (c *candidates) startResolve() func(context.Context) resolved {
	c.resolving, c.resolvedAt = true, time.Now()
	resolve := c.client.cfg.Resolve
	return func(ctx context.Context) resolved {
		ctx, cancel := context.WithTimeout(ctx, 2*connectTime)
		defer cancel()
		addrs, err := resolve(ctx)
		return resolved{addrs, err}
	}
}

// endResolve takes the addresses of the server, and reports whether they have changed. It
// keeps the address that works, if there is one, whatever a name server in a foreign network says.
func (c *candidates) endResolve(r resolved, works netip.AddrPort, log *slog.Logger) bool {
	c.resolving, c.resolvedAt = false, time.Now()
	if r.err != nil || len(r.addrs) == 0 {
		log.Debug("the server's name does not resolve now", "error", r.err)
		return false
	}
	c.named = r.addrs
	addrs := slices.Clone(r.addrs[:min(len(r.addrs), maxAddresses)])
	for _, addr := range slices.Insert(slices.Clone(c.addrs), 0, works) {
		if addr.IsValid() && len(addrs) < maxAddresses+1 && !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	// Name servers change the order each time.
	changed := len(addrs) != len(c.addrs) || slices.ContainsFunc(addrs, func(a netip.AddrPort) bool {
		return !slices.Contains(c.addrs, a)
	})
	c.addrs = addrs
	c.best.Store(&c.addrs[0])
	return changed
}
