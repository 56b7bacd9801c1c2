//go:build linux || darwin

package monitor

import (
	"cmp"
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

	"github.com/quicterm/quicterm/quicterm/machine/systemd"
)

// bindInterval is the time between two attempts to open sockets that are missing: clients
// wait no longer after the other process has ended. An attempt takes microseconds.
const bindInterval = time.Second

// vanishedTime is how long an address may be gone until its socket is closed. Within it, QUIC
// connections go on when the address comes back.
const vanishedTime = time.Minute

// sockets are the UDP sockets and the TCP listeners of a daemon, at the same addresses and ports.
// Where a process of another account has taken a port on one address, the daemon serves all
// other addresses, and tries to get that one again. So it does without TCP where it has only UDP.
type sockets struct {
	server  *Monitor
	manager *systemd.Manager
	serves  string             // see Log in the package's documentation
	spare   map[binding]socket // passed by the manager and not used yet
	beside  []binding          // what a unit of type socket has not opened beside its own

	addresses func() ([]net.Addr, error) // of this machine
	opened    chan struct{}              // wakes serve

	mu     sync.Mutex
	all    netip.AddrPort          // where a granted daemon listens on all addresses, if it does
	open   map[binding]*openSocket // by what was asked for
	fresh  []*openSocket           // opened and not served yet
	whole  bool                    // nothing is missing
	taken  map[taker]bool          // sockets of others that were logged
	failed map[wish]time.Time      // when the reason was looked for
}

// A wish is a protocol, "udp" or "tcp", and an address to listen on.
type wish struct{ protocol, address string }

// An openSocket is a socket, and whether it is still needed.
type openSocket struct {
	socket
	bound  binding
	wanted bool            // the settings name its address
	seenAt time.Time       // when its address was one of this machine, if it is not wanted
	life   context.Context // ends when its address is gone
	end    func()
}

// newSockets opens the sockets that the settings name, or that of a granted daemon. It
// fails if it can open none, unless it is root's daemon: that one waits.
func (s *Monitor) newSockets() (*sockets, error) {
	l := &sockets{
		server: s, manager: s.manager, serves: s.self.Name, addresses: net.InterfaceAddrs,
		spare: make(map[binding]socket),
		open:  make(map[binding]*openSocket),
		taken: make(map[taker]bool), failed: make(map[wish]time.Time),
		opened: make(chan struct{}, 1),
	}
	if s.all {
		l.serves = "all accounts"
	}
	if s.granted {
		_, err := l.openGrantedLocked(netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback())
		l.whole = true
		return l, err
	}
	for _, p := range s.passed {
		if b := bindingOf(p.Conn); strings.HasPrefix(p.Name, keptPrefix) {
			l.spare[b] = p.Conn
		} else { // of a unit of type socket, which replaces the setting
			l.addLocked(b, p.Conn, true)
			l.beside = append(l.beside, b.beside())
		}
	}
	if err := l.fill(); err != nil && !l.has("udp") && !s.all {
		l.close()
		return nil, fmt.Errorf("%w: another qtd may be running: stop it, or listen on another port", err)
	}
	for b, c := range l.spare { // the settings have changed
		c.Close()
		l.manager.Forget(b.keptName())
	}
	return l, nil
}

// addLocked adds an open socket.
func (l *sockets) addLocked(b binding, c socket, wanted bool) {
	socket := &openSocket{socket: c, bound: bindingOf(c), wanted: wanted}
	socket.life, socket.end = context.WithCancel(context.Background())
	l.open[b] = socket
	l.fresh = append(l.fresh, socket)
}

// fill opens the sockets that are missing. It returns why some are still missing.
func (l *sockets) fill() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.tellLocked()
	if l.whole {
		return nil
	}
	var failures []error
	l.whole = true
	check := func(protocol, address string, port uint16, err error) {
		if err != nil {
			l.whole = false
			l.reportLocked(wish{protocol, address}, port, err)
			failures = append(failures, err)
		}
	}
	for _, b := range l.beside {
		check(b.protocol(), b.address.String(), b.address.Port(), l.openLocked(b, true))
	}
	if l.beside != nil {
		return errors.Join(failures...)
	}
	for _, wanted := range l.server.settings().Listen {
		addr, err := net.ResolveUDPAddr("udp", wanted)
		if err != nil {
			check("udp", wanted, 0, fmt.Errorf("address to listen on: %w", err))
			continue
		}
		a := addr.AddrPort()
		check("udp", wanted, a.Port(), l.fillLocked("udp", a))
		if a, ok := l.assignedLocked(a); ok {
			check("tcp", wanted, a.Port(), l.fillLocked("tcp", a))
		}
	}
	return errors.Join(failures...)
}

// assignedLocked returns an address with the port that the system has assigned to its UDP socket,
// if its own is 0. It reports whether there is a port.
func (l *sockets) assignedLocked(a netip.AddrPort) (netip.AddrPort, bool) {
	if a.Port() != 0 {
		return a, true
	}
	ip := a.Addr().Unmap()
	for b, c := range l.open {
		sameIP := b.address.Addr() == ip || !ip.IsValid() && b.address.Addr().IsUnspecified()
		if b.protocol() == "udp" && b.address.Port() == 0 && sameIP {
			return netip.AddrPortFrom(ip, c.bound.address.Port()), true
		}
	}
	return a, false
}

// has reports whether a socket of a protocol is open.
func (l *sockets) has(protocol string) bool {
	for b := range l.open {
		if b.protocol() == protocol {
			return true
		}
	}
	return false
}

// unreachableLocked returns why no client can come over UDP or over TCP, or nothing.
func (l *sockets) unreachableLocked() string {
	var none []string
	for _, protocol := range []string{"udp", "tcp"} {
		if !l.has(protocol) {
			none = append(none, strings.ToUpper(protocol))
		}
	}
	if none == nil {
		return ""
	}
	return "no " + strings.Join(none, " or ") + " socket is open: another process has the port, or the address is not one of this machine; the log says which"
}

// tellLocked tells both halves if that has changed.
func (l *sockets) tellLocked() {
	reason := l.unreachableLocked()
	if last := l.server.unreachable.Swap(&reason); last != nil && *last != reason {
		l.server.update()
	}
}

// openGrantedLocked opens the sockets of a granted daemon at one of the given addresses, and
// returns how its UDP socket is bound.
func (l *sockets) openGrantedLocked(ips ...netip.Addr) (binding, error) {
	udp, tcp, err := listenGranted(ips...)
	if err != nil {
		return binding{}, err
	}
	b := bindingOf(udp)
	l.addLocked(b, udp, true)
	l.addLocked(bindingOf(tcp), tcp, true)
	return b, nil
}

// public returns the address at which programs of this machine reach the daemon, with the port
// at which others do. A granted daemon first listens on all addresses, if it does not.
func (l *sockets) public() (netip.AddrPort, error) {
	if !l.server.granted {
		return l.local()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.all.IsValid() {
		b, err := l.openGrantedLocked(netip.IPv6Unspecified())
		if err != nil {
			return netip.AddrPort{}, err
		}
		l.all = netip.AddrPortFrom(loopback[b.network], b.address.Port())
		l.opened <- struct{}{}
	}
	return l.all, nil
}

// fillLocked opens the sockets of a protocol at one address. If it means all addresses, and one
// socket cannot have them, there are several, as few as possible.
func (l *sockets) fillLocked(protocol string, wanted netip.AddrPort) error {
	ip, port := wanted.Addr().Unmap(), wanted.Port()
	at := func(family string, ip netip.Addr) binding {
		return binding{protocol + family, netip.AddrPortFrom(ip, port)}
	}
	switch {
	case ip.IsValid() && ip.Is4() && ip.IsUnspecified():
		return l.fillFamilyLocked(at("4", ip))
	case ip.IsValid() && ip.Is4():
		return l.openLocked(at("4", ip), true)
	case ip.IsValid() && !ip.IsUnspecified():
		return l.openLocked(at("6", ip), true)
	}
	four, six := at("4", netip.IPv4Unspecified()), at("6", netip.IPv6Unspecified())
	if !l.anyLocked(four) && !l.anyLocked(six) && l.openLocked(at("", netip.IPv6Unspecified()), true) == nil {
		return nil
	}
	return errors.Join(l.fillFamilyLocked(four), l.fillFamilyLocked(six))
}

// fillFamilyLocked opens a socket for all addresses of a family, or else one for each.
func (l *sockets) fillFamilyLocked(all binding) error {
	_, isOpen := l.open[all]
	if !isOpen && l.anyLocked(all) {
		return l.fillEachLocked(all)
	}
	err := l.openLocked(all, true)
	if err != nil && errors.Is(err, syscall.EADDRINUSE) {
		l.fillEachLocked(all)
	}
	if errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) {
		return nil // this machine does not have the family
	}
	return err
}

// fillEachLocked opens a socket for each address of this machine of a family, and closes those of
// addresses that are gone. Addresses come and go: there is always something to do.
func (l *sockets) fillEachLocked(all binding) error {
	local, err := l.addresses()
	now, known := time.Now(), err == nil
	for _, a := range local {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, _ := netip.AddrFromSlice(n.IP)
		ip = ip.Unmap()
		if ip.Is4() != all.address.Addr().Is4() || ip.IsLinkLocalUnicast() {
			continue
		}
		b := binding{all.network, netip.AddrPortFrom(ip, all.address.Port())}
		err = errors.Join(err, l.openLocked(b, false))
		if socket := l.open[b]; socket != nil {
			socket.seenAt = now
		}
	}
	for b, socket := range l.open {
		if known && b.isOf(all) && !socket.wanted && now.Sub(socket.seenAt) >= vanishedTime {
			delete(l.open, b)
			socket.end()
			l.server.log.Info("not listening any more", "address", b.address.String(), "reason", "the machine has lost the address")
		}
	}
	return cmp.Or(err, error(errEach))
}

// errEach is why sockets are not whole while each address has one of its own.
var errEach = errors.New("each address has a socket of its own")

// anyLocked reports whether a socket is open at an address of a family.
func (l *sockets) anyLocked(all binding) bool {
	for b := range l.open {
		if b.isOf(all) {
			return true
		}
	}
	return false
}

// openLocked opens a socket, unless it is open. The manager keeps it if the settings want it.
func (l *sockets) openLocked(b binding, wanted bool) error {
	if socket := l.open[b]; socket != nil {
		socket.wanted = socket.wanted || wanted
		return nil
	}
	if c := l.spare[b]; c != nil {
		delete(l.spare, b)
		l.addLocked(b, c, wanted)
		return nil
	}
	c, err := b.listen()
	if err != nil {
		return err
	}
	if wanted {
		if err := l.manager.Keep(b.keptName(), c); err != nil {
			l.server.log.Warn("the port is not held while the daemon restarts",
				"address", bindingOf(c).address.String(), "error", err)
		}
	}
	l.addLocked(b, c, wanted)
	return nil
}

// serve serves the sockets until ctx ends or one fails. It closes them.
func (l *sockets) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	for {
		l.mu.Lock()
		fresh, whole := l.fresh, l.whole
		l.fresh = nil
		l.mu.Unlock()
		for _, c := range fresh {
			wg.Go(func() {
				if err := l.serveSocket(ctx, c); err != nil {
					cancel(err)
				}
			})
		}
		var retry <-chan time.Time
		if !whole {
			retry = time.After(bindInterval)
		}
		select {
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		case <-l.opened:
		case <-retry:
			l.fill()
		}
	}
}

// serveSocket has a socket served until ctx ends or its address is gone. It closes the socket.
func (l *sockets) serveSocket(ctx context.Context, c *openSocket) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	l.server.log.Info("listening", "address", c.bound.address.String(), "protocol", c.bound.protocol(), "serves", l.serves)
	purpose := ForQUIC
	if c.bound.protocol() == "tcp" {
		purpose = ForTCP
	}
	return (*l.server.network.Load()).Serve(ctx, Listener{purpose, c.socket})
}

// close closes sockets that are not served.
func (l *sockets) close() {
	for _, c := range l.fresh {
		c.Close()
	}
	for _, c := range l.spare {
		c.Close()
	}
}

// errNoSocket is the error of a grant of a daemon that has no UDP socket.
var errNoSocket = errors.New("the daemon has no UDP socket: another process has its port, and its log names it")

// loopback has the address at which a socket for all addresses is reached, by its network.
var loopback = map[string]netip.Addr{
	"udp": netip.AddrFrom4([4]byte{127, 0, 0, 1}), "udp4": netip.AddrFrom4([4]byte{127, 0, 0, 1}), "udp6": netip.IPv6Loopback(),
}

// local returns the address at which programs of this machine reach the daemon.
func (l *sockets) local() (netip.AddrPort, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var addresses []netip.AddrPort
	for _, c := range l.open {
		b := c.bound
		if b.protocol() != "udp" {
			continue
		}
		if b.address.Addr().IsUnspecified() {
			b.address = netip.AddrPortFrom(loopback[b.network], b.address.Port())
		}
		addresses = append(addresses, b.address)
	}
	if len(addresses) == 0 {
		return netip.AddrPort{}, errNoSocket
	}
	return slices.MinFunc(addresses, func(a, b netip.AddrPort) int {
		switch {
		case a.Addr().IsLoopback() && !b.Addr().IsLoopback():
			return -1
		case b.Addr().IsLoopback() && !a.Addr().IsLoopback():
			return 1
		}
		return a.Compare(b)
	}), nil
}
