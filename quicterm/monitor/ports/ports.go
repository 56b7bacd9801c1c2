//go:build linux || darwin

// Package ports opens the sockets that a daemon serves: for UDP and for TCP, at the same addresses and ports. It takes
// over those that the service manager has kept, and says which process has a port that is taken. It reads nothing from
// a socket.
package ports

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quicterm/quicterm/quicterm/machine/systemd"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// A granted daemon takes the first free port of the range that mosh uses. The usual port
// is for root's daemon: a granted one must not keep that out.
const firstGranted, lastGranted = 60000, 61000

// IsGranted reports whether a port is one that granted daemons take.
func IsGranted(port uint16) bool { return port >= firstGranted && port <= lastGranted }

// A Config says which sockets a daemon has.
type Config struct {
	Granted bool             // it has a port of its own, at the loopback interface, and no address of Listen
	Listen  []string         // the setting
	Passed  []systemd.Conn   // by the manager: they are used if Listen names their addresses
	Manager *systemd.Manager // keeps the sockets
	Log     *slog.Logger     // says what is open
	Serves  string           // key of the log
}

// Sockets are open. Any goroutine may use them.
type Sockets struct {
	Config

	mu    sync.Mutex
	open  []socket
	all   netip.AddrPort // where a granted daemon listens on all addresses, if it does
	begin func(socket)   // serves a further socket, while Serve runs
}

// Open opens the sockets. Those that the service manager has passed are used first. It fails if one cannot be opened.
func Open(c Config) (l *Sockets, err error) {
	l = &Sockets{Config: c}
	defer func() {
		if err != nil {
			l.Close()
			l = nil
		}
	}()
	if c.Granted {
		_, err := l.openGranted(netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback())
		return l, err
	}
	kept := make(map[binding]socket)
	for _, one := range c.Passed {
		kept[bindingOf(one)] = one
	}
	defer func() {
		for b, one := range kept { // the settings have changed
			one.Close()
			c.Manager.Forget(b.keptName())
		}
	}()
	for _, address := range c.Listen {
		resolved, err := net.ResolveUDPAddr("udp", address)
		if err != nil {
			return l, fmt.Errorf("address to listen on: %w", err)
		}
		b := udpAt(resolved.AddrPort())
		if slices.ContainsFunc(l.open, func(c socket) bool { return bindingOf(c) == b }) {
			continue // two names may mean one address
		}
		if err := l.openBoth(b, kept); err != nil {
			return l, err
		}
	}
	return l, nil
}

// openBoth opens the sockets of both protocols at an address. A port 0 stands for one that is free for both.
func (l *Sockets) openBoth(b binding, kept map[binding]socket) error {
	for try := 1; ; try++ {
		first, err := l.openOne(b, kept)
		if err != nil {
			return err
		}
		second, err := l.openOne(bindingOf(first).beside(), kept)
		if err == nil {
			l.open = append(l.open, first, second)
			return nil
		}
		first.Close()
		if b.address.Port() != 0 || try == maxPortTries {
			return err
		}
	}
}

// maxPortTries bounds the ports that are tried where any will do: a program rarely has one for a single protocol.
const maxPortTries = 10

// bindPatience bounds how long a daemon waits for a port at its start: the network process of a daemon that was killed
// has its sockets until it sees that, within milliseconds unless the machine is starved.
const bindPatience = 3 * time.Second

// openOne returns the socket of a binding that is open, is kept by the manager, or else is opened and kept there.
func (l *Sockets) openOne(b binding, kept map[binding]socket) (socket, error) {
	for _, k := range []binding{b, b.withoutIPv6()} {
		if c := kept[k]; c != nil {
			delete(kept, k)
			return c, nil
		}
	}
	c, err := b.listen()
	for start := time.Now(); errors.Is(err, syscall.EADDRINUSE) && time.Since(start) < bindPatience; c, err = b.listen() {
		time.Sleep(bindPatience / 100)
	}
	if err != nil {
		return nil, fmt.Errorf("%w%s: stop the process that has the port, or listen on another one", err, takenBy(b))
	}
	if b.address.Port() != 0 { // otherwise the next daemon would not know whether the settings still want it
		bound := bindingOf(c)
		if err := l.Manager.Keep(bound.keptName(), c); err != nil {
			l.Log.Warn("the port is not held while the daemon restarts", "address", bound.address.String(), "error", err)
		}
	}
	return c, nil
}

// openGranted opens the sockets of a granted daemon at one of the given addresses, and returns how its UDP socket
// is bound.
func (l *Sockets) openGranted(ips ...netip.Addr) (b binding, err error) {
	for port := uint16(firstGranted); port <= lastGranted; port++ {
		for _, ip := range ips {
			b = udpAt(netip.AddrPortFrom(ip, port))
			var udp, tcp socket
			if udp, err = b.listen(); err != nil {
				continue
			}
			if tcp, err = b.beside().listen(); err == nil {
				l.open = append(l.open, udp, tcp)
				return bindingOf(udp), nil
			}
			udp.Close()
		}
	}
	return b, fmt.Errorf("no port from %d to %d is free: %w", firstGranted, lastGranted, err)
}

// Public returns the address at which programs of this machine reach the daemon, with the port
// at which others do. A granted daemon first listens on all addresses, if it does not.
func (l *Sockets) Public() (netip.AddrPort, error) {
	if !l.Granted {
		return l.Local(), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.all.IsValid() {
		b, err := l.openGranted(netip.IPv6Unspecified())
		if err != nil {
			return netip.AddrPort{}, err
		}
		l.all = b.reachable()
		if l.begin != nil {
			for _, c := range l.open[len(l.open)-2:] {
				l.begin(c)
			}
		}
	}
	return l.all, nil
}

// Serve has the network half serve the sockets until ctx ends or one fails. That closes them.
func (l *Sockets) Serve(ctx context.Context, serve func(context.Context, privsep.Listener) error) error {
	group, ctx := errgroup.WithContext(ctx)
	begin := func(c socket) {
		b := bindingOf(c)
		listener := privsep.Listener{Purpose: privsep.ForQUIC, Socket: c}
		if b.protocol() == "tcp" {
			listener.Purpose = privsep.ForTCP
		}
		l.Log.Info("listening", "address", b.address.String(), "protocol", b.protocol(), "serves", l.Serves)
		group.Go(func() error {
			if err := serve(ctx, listener); ctx.Err() == nil {
				return err
			}
			return nil
		})
	}
	l.mu.Lock()
	for _, c := range l.open {
		begin(c)
	}
	l.begin = begin
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	l.begin = nil
	l.mu.Unlock()
	return group.Wait()
}

// Close closes the sockets of a daemon that does not serve them.
func (l *Sockets) Close() {
	for _, c := range l.open {
		c.Close()
	}
}

// Local returns the address at which programs of this machine reach the daemon: on the loopback interface if it
// listens there.
func (l *Sockets) Local() netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	var addresses []netip.AddrPort
	for _, c := range l.open {
		if b := bindingOf(c); b.protocol() == "udp" {
			addresses = append(addresses, b.reachable())
		}
	}
	return slices.MinFunc(addresses, func(a, b netip.AddrPort) int {
		switch {
		case a.Addr().IsLoopback() && !b.Addr().IsLoopback():
			return -1
		case b.Addr().IsLoopback() && !a.Addr().IsLoopback():
			return 1
		}
		return a.Compare(b)
	})
}
