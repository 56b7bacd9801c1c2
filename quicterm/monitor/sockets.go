//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// sockets are the UDP sockets and the TCP listeners of a daemon, at the same addresses and ports.
type sockets struct {
	server *Monitor
	serves string // see Log in the package's documentation
	opened chan socket

	mu   sync.Mutex
	open []socket
	all  netip.AddrPort // where a granted daemon listens on all addresses, if it does
}

// newSockets opens the sockets that the settings name, or that of a granted daemon. Sockets that the service manager
// has passed are used first. It fails if one cannot be opened.
func (s *Monitor) newSockets() (l *sockets, err error) {
	l = &sockets{server: s, serves: s.self.Name, opened: make(chan socket, 2)}
	if s.all {
		l.serves = "all accounts"
	}
	defer func() {
		if err != nil {
			l.close()
			l = nil
		}
	}()
	if s.granted {
		_, err := l.openGranted(netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback())
		return l, err
	}
	kept := make(map[binding]socket)
	var wanted []binding
	for _, p := range s.passed {
		b := bindingOf(p.Conn)
		kept[b] = p.Conn
		if !strings.HasPrefix(p.Name, keptPrefix) { // of a unit of type socket, which replaces the setting
			wanted = append(wanted, b)
		}
	}
	defer func() {
		for b, c := range kept { // the settings have changed
			c.Close()
			s.manager.Forget(b.keptName())
		}
	}()
	if wanted == nil {
		for _, address := range s.settings().Listen {
			b, err := udpAt(address)
			if err != nil {
				return l, fmt.Errorf("address to listen on: %w", err)
			}
			wanted = append(wanted, b)
		}
	}
	for _, b := range wanted {
		if slices.ContainsFunc(l.open, func(c socket) bool { return bindingOf(c) == b }) {
			continue // a unit of type socket may have both protocols
		}
		if err := l.openBoth(b, kept); err != nil {
			return l, err
		}
	}
	return l, nil
}

// openBoth opens the sockets of both protocols at an address. A port 0 stands for one that is free for both.
func (l *sockets) openBoth(b binding, kept map[binding]socket) error {
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
func (l *sockets) openOne(b binding, kept map[binding]socket) (socket, error) {
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
		if err := l.server.manager.Keep(bound.keptName(), c); err != nil {
			l.server.log.Warn("the port is not held while the daemon restarts", "address", bound.address.String(), "error", err)
		}
	}
	return c, nil
}

// openGranted opens the sockets of a granted daemon at one of the given addresses, and returns how its UDP socket
// is bound.
func (l *sockets) openGranted(ips ...netip.Addr) (binding, error) {
	udp, tcp, err := listenGranted(ips...)
	if err != nil {
		return binding{}, err
	}
	l.open = append(l.open, udp, tcp)
	return bindingOf(udp), nil
}

// public returns the address at which programs of this machine reach the daemon, with the port
// at which others do. A granted daemon first listens on all addresses, if it does not.
func (l *sockets) public() (netip.AddrPort, error) {
	if !l.server.granted {
		return l.local(), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.all.IsValid() {
		b, err := l.openGranted(netip.IPv6Unspecified())
		if err != nil {
			return netip.AddrPort{}, err
		}
		l.all = netip.AddrPortFrom(loopback[b.network], b.address.Port())
		for _, c := range l.open[len(l.open)-2:] {
			l.opened <- c
		}
	}
	return l.all, nil
}

// serve serves the sockets until ctx ends or one fails. It closes them.
func (l *sockets) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	begin := func(c socket) {
		wg.Go(func() {
			if err := l.serveSocket(ctx, c); err != nil {
				cancel(err)
			}
		})
	}
	l.mu.Lock()
	for len(l.opened) > 0 {
		<-l.opened // it is among the open ones
	}
	for _, c := range l.open {
		begin(c)
	}
	l.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		case c := <-l.opened:
			begin(c)
		}
	}
}

// serveSocket makes the network half serve a socket until ctx ends. That closes the socket.
func (l *sockets) serveSocket(ctx context.Context, c socket) error {
	b := bindingOf(c)
	l.server.log.Info("listening", "address", b.address.String(), "protocol", b.protocol(), "serves", l.serves)
	purpose := privsep.ForQUIC
	if b.protocol() == "tcp" {
		purpose = privsep.ForTCP
	}
	return (*l.server.network.Load()).Serve(ctx, privsep.Listener{Purpose: purpose, Socket: c})
}

// close closes the sockets of a daemon that does not serve them.
func (l *sockets) close() {
	for _, c := range l.open {
		c.Close()
	}
}

// loopback has the address at which a socket for all addresses is reached, by its network.
var loopback = map[string]netip.Addr{
	"udp": netip.AddrFrom4([4]byte{127, 0, 0, 1}), "udp4": netip.AddrFrom4([4]byte{127, 0, 0, 1}), "udp6": netip.IPv6Loopback(),
}

// local returns the address at which programs of this machine reach the daemon: on the loopback interface if it
// listens there.
func (l *sockets) local() netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	var addresses []netip.AddrPort
	for _, c := range l.open {
		if b := bindingOf(c); b.protocol() == "tcp" {
			continue
		} else if b.address.Addr().IsUnspecified() {
			addresses = append(addresses, netip.AddrPortFrom(loopback[b.network], b.address.Port()))
		} else {
			addresses = append(addresses, b.address)
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

// udpAt returns the binding of a UDP socket for an address of the setting listen.
func udpAt(address string) (binding, error) {
	resolved, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return binding{}, err
	}
	ip, port := resolved.AddrPort().Addr().Unmap(), resolved.AddrPort().Port()
	switch {
	case ip.Is4():
		return binding{"udp4", netip.AddrPortFrom(ip, port)}, nil
	case ip.IsValid() && !ip.IsUnspecified():
		return binding{"udp6", netip.AddrPortFrom(ip, port)}, nil
	}
	return binding{"udp", netip.AddrPortFrom(netip.IPv6Unspecified(), port)}, nil
}
