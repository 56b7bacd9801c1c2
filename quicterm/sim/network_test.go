//go:build linux || darwin

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/migrate/netmon"
)

// serverAddrs are where the server listens, for UDP and TCP.
var serverAddrs = []netip.AddrPort{
	netip.MustParseAddrPort("10.9.0.1:4433"),
	netip.MustParseAddrPort("[fd00:9::1]:4433"),
}

// A machine is one of the clients' machines.
type machine struct {
	world *world
	name  string
	ports []*port // the one that it prefers first
	procs []*process
}

// A port is an interface of a machine, with its links to and from the server. Net.Do guards it.
type port struct {
	name     string
	v4, v6   netip.Addr
	base     netem.Config    // of both links, without faults
	faults   map[*fault]bool // that change the links now
	gone     bool            // it is down
	noUDP    bool
	noTCP    bool
	noV4     bool
	mtu      int     // largest UDP payload that passes, or 0
	corrupts float64 // share of the packets of which a bit changes
	renewed  int     // how often its addresses have changed
	to, from *netem.Link
}

// newMachine adds a machine with some interfaces.
func (w *world) newMachine(name string, links ...netem.Config) *machine {
	m := &machine{world: w, name: name}
	for i, link := range links {
		p := &port{name: []string{"wlan0", "wwan0", "eth0"}[i], base: link, faults: make(map[*fault]bool)}
		p.to, p.from = netem.NewLink(link, w.rng.Uint64()), netem.NewLink(link, w.rng.Uint64())
		m.ports = append(m.ports, p)
		p.address(len(w.machines), i)
	}
	w.machines = append(w.machines, m)
	return m
}

// address gives a port addresses that it has not had before.
func (p *port) address(machine, number int) {
	p.v4 = netip.AddrFrom4([4]byte{10, byte(10 + machine), byte(number), byte(1 + p.renewed)})
	p.v6 = netip.AddrFrom16([16]byte{0: 0xfd, 1: byte(10 + machine), 2: byte(number), 15: byte(1 + p.renewed)})
	p.renewed++
}

func (p *port) has(addr netip.Addr) bool { return addr == p.v4 || addr == p.v6 }

// route returns the link that a packet takes, if there is one, and routeStreams the same of TCP.
func (w *world) route(from, to netip.AddrPort) *netem.Link { return w.link(from, to, false) }

func (w *world) routeStreams(from, to netip.AddrPort) *netem.Link { return w.link(from, to, true) }

func (w *world) link(from, to netip.AddrPort, isTCP bool) *netem.Link {
	for _, m := range w.machines {
		for _, p := range m.ports {
			switch {
			case p.gone || isTCP && p.noTCP:
			case p.has(from.Addr()):
				return p.to
			case p.has(to.Addr()):
				return p.from
			}
		}
	}
	return nil // the address is gone
}

// settle makes the links of a port what its faults leave of them.
func (p *port) settle() {
	link := p.base
	p.mtu, p.corrupts, p.noUDP, p.noTCP, p.noV4 = 0, 0, false, false, false
	for f := range p.faults {
		f.kind.change(f, p, &link)
	}
	p.to.Set(link)
	p.from.Set(link)
}

// look returns the interfaces that are up.
func (m *machine) look() (up []*port) {
	m.world.net.Do(func() {
		for _, p := range m.ports {
			if !p.gone {
				up = append(up, p)
			}
		}
	})
	return up
}

// tell reports to the clients on a machine that their network may have changed.
func (m *machine) tell(e netmon.Event) {
	for _, p := range m.procs {
		select {
		case p.events <- e:
		default: // one waits already
		}
	}
}

// A process is a client as its machine sees it. From the moment when it is killed, nothing that it does has an effect.
// It is the client's Network.
type process struct {
	machine *machine
	events  chan netmon.Event

	mu      sync.Mutex
	killed  bool
	scarce  bool          // it gets no more descriptors
	starved bool          // it is stopped for a moment: what it sends waits
	stopped chan struct{} // closed when it continues, or nil
	open    map[interface{ Close() error }]bool
	heard   []received // by an attacker: the last packets that begin a connection
	meter   meter
	sources map[lookup]netip.Addr // what was found last
}

// A lookup asks for the address from which a server is reached over an interface.
type lookup struct {
	remote netip.Addr
	iface  string
}

// maxHeard is how many packets an attacker keeps.
const maxHeard = 20

// record counts a packet, and lets an attacker hear one that begins a connection, with what is sent in it at once (RFC 9000, 17.2).
func (p *process) record(packet []byte, to net.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.meter.packets++; packet[0]&0x80 == 0 {
		return
	}
	if p.heard = append(p.heard, received{append([]byte(nil), packet...), to}); len(p.heard) > maxHeard {
		p.heard = p.heard[1:]
	}
}

// replay sends what an attacker has heard once more, from another port.
func (p *process) replay() {
	p.mu.Lock()
	heard := p.heard
	p.mu.Unlock()
	up := p.machine.look()
	if len(up) == 0 {
		return
	}
	attacker := p.machine.world.net.Listen(netip.AddrPortFrom(up[0].v4, 0))
	for _, packet := range heard {
		attacker.WriteTo(packet.data, packet.from)
	}
	attacker.Close()
}

func (m *machine) newProcess() *process {
	p := &process{
		machine: m, events: make(chan netmon.Event, 1), open: make(map[interface{ Close() error }]bool),
		sources: make(map[lookup]netip.Addr),
	}
	m.procs = append(m.procs, p)
	return p
}

// kill ends the process as the kernel does: its sockets are closed, and say nothing more.
func (p *process) kill() {
	p.mu.Lock()
	open := p.open
	p.killed, p.open = true, nil
	if p.stopped != nil {
		close(p.stopped)
		p.stopped = nil
	}
	p.mu.Unlock()
	for c := range open {
		c.Close()
	}
}

// stop makes the process do nothing until resume is called.
func (p *process) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starved = false
	if p.stopped == nil && !p.killed {
		p.stopped = make(chan struct{})
	}
}

func (p *process) resume() {
	p.mu.Lock()
	if p.stopped != nil {
		close(p.stopped)
		p.stopped = nil
	}
	p.mu.Unlock()
	select {
	case p.events <- netmon.Woke:
	default:
	}
}

// await waits until the process may run, and reports whether it lives.
func (p *process) await() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stopped != nil {
		stopped := p.stopped
		p.mu.Unlock()
		<-stopped
		p.mu.Lock()
	}
	return !p.killed
}

// halted returns a channel that is closed when the process continues, or nil if it runs.
func (p *process) halted() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// waits is halted, and reports whether what the process sends is sent when it continues.
func (p *process) waits() (resumed chan struct{}, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped, p.stopped != nil && p.starved
}

// continued is halted with a closed channel if the process runs.
func (p *process) continued() chan struct{} {
	if c := p.halted(); c != nil {
		return c
	}
	c := make(chan struct{})
	close(c)
	return c
}

// keep records a socket of the process. Scarce descriptors, or its end, close it.
func (p *process) keep(c interface{ Close() error }) error {
	p.mu.Lock()
	refused := p.killed || p.scarce
	if !refused {
		p.open[c] = true
		p.meter.opened(c)
	}
	p.mu.Unlock()
	if refused {
		c.Close()
		return syscall.EMFILE
	}
	return nil
}

func (p *process) forget(c interface{ Close() error }) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// Interfaces returns the names of those that are up.
func (p *process) Interfaces() (names []string, err error) {
	for _, port := range p.machine.look() {
		names = append(names, port.name)
	}
	return names, nil
}

// lookup returns the interface that packets take, and their source.
func (p *process) lookup(remote netip.AddrPort, iface string) (used *port, source netip.Addr, err error) {
	up := p.machine.look()
	p.machine.world.net.Do(func() {
		for _, port := range up {
			switch {
			case used != nil || iface != "" && iface != port.name:
			case remote.Addr().Is6():
				used, source = port, port.v6
			case !port.noV4:
				used, source = port, port.v4
			}
		}
	})
	if used == nil {
		return nil, source, syscall.ENETUNREACH
	}
	return used, source, nil
}

// Lookup returns the way to the server over an interface, or over the first that is up.
func (p *process) Lookup(remote netip.AddrPort, iface string) (netmon.Route, error) {
	port, source, err := p.lookup(remote, iface)
	p.mu.Lock()
	asked := lookup{remote.Addr(), iface}
	if last, ok := p.sources[asked]; ok && last != source { // a change that the client finds untold
		p.meter.events++
	}
	p.sources[asked] = source
	p.mu.Unlock()
	if err != nil {
		return netmon.Route{}, err
	}
	return netmon.Route{Interface: port.name, Source: source}, nil
}

// Dial opens a TCP connection.
func (p *process) Dial(ctx context.Context, iface string, remote netip.AddrPort) (net.Conn, error) {
	p.mu.Lock()
	killed := p.killed
	p.mu.Unlock()
	if killed {
		return nil, net.ErrClosed
	}
	port, source, err := p.lookup(remote, iface)
	if err != nil {
		return nil, err
	}
	c, err := p.machine.world.net.DialStream(ctx, source, remote)
	if err != nil {
		return nil, err
	}
	s := &stream{Conn: c, process: p, port: port, closed: make(chan struct{})}
	return s, p.keep(s)
}

// Watch calls f with what tell reports.
func (p *process) Watch(ctx context.Context, _ func() netip.AddrPort, f func(netmon.Event)) error {
	for {
		select {
		case e := <-p.events:
			p.mu.Lock()
			p.meter.events++
			p.mu.Unlock()
			f(e)
		case <-ctx.Done():
			return nil
		}
	}
}

// Listen opens a UDP socket for both families.
func (p *process) Listen(iface string) (net.PacketConn, error) {
	if _, _, err := p.lookup(serverAddrs[1], iface); err != nil {
		return nil, err
	}
	s := &socket{process: p, iface: iface, received: make(chan received, 64), closed: make(chan struct{}),
		expired: make(chan struct{})}
	return s, p.keep(s)
}

// A socket is a UDP socket of a client, behind the NAT of each interface that it uses. A NAT gives it another address when
// it has forgotten it.
type socket struct {
	process *process
	iface   string

	received chan received
	closed   chan struct{}
	once     sync.Once

	mu       sync.Mutex
	deadline *time.Timer
	expired  chan struct{} // closed when the deadline has passed or changes
	ways     []*way
}

type received struct {
	data []byte
	from net.Addr
}

// A way is how a socket's packets pass one address of an interface.
type way struct {
	port   *port
	source netip.Addr
	conn   net.PacketConn // outside of the NAT
}

// way returns how packets to an address leave.
func (s *socket) way(to netip.AddrPort) (*way, error) {
	port, source, err := s.process.lookup(to, s.iface)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return nil, net.ErrClosed
	default:
	}
	for _, w := range s.ways {
		if w.port == port && w.source == source {
			return w, nil
		}
	}
	w := &way{port: port, source: source, conn: s.process.machine.world.net.Listen(netip.AddrPortFrom(source, 0))}
	s.ways = append(s.ways, w)
	go s.pump(w)
	return w, nil
}

// pump passes on what arrives.
func (s *socket) pump(w *way) {
	for {
		b := make([]byte, 2048)
		n, from, err := w.conn.ReadFrom(b)
		if err != nil {
			return
		}
		if !s.passes(w.port, b[:n]) {
			continue
		}
		s.process.mu.Lock()
		s.process.meter.received++
		s.process.mu.Unlock()
		select {
		case s.received <- received{b[:n], from}:
		case <-s.closed:
			return
		default: // as a kernel drops what nobody reads
		}
	}
}

// passes reports whether a packet passes an interface, of which it may change a bit.
func (s *socket) passes(p *port, b []byte) (passes bool) {
	w := s.process.machine.world
	w.net.Do(func() {
		passes = !p.noUDP && (p.mtu == 0 || len(b) <= p.mtu)
		if p.corrupts > 0 && rand.Float64() < p.corrupts && len(b) > 0 {
			b[rand.IntN(len(b))] ^= 1 << rand.IntN(8)
		}
	})
	return passes
}

// rebind makes the NAT of an interface forget its mappings: packets to them are dropped, and later ones get others.
func (s *socket) rebind(p *port) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.ways[:0]
	for _, w := range s.ways {
		if w.port == p {
			w.conn.Close()
		} else {
			kept = append(kept, w)
		}
	}
	s.ways = kept
}

func (s *socket) WriteTo(b []byte, addr net.Addr) (int, error) {
	if resumed, waits := s.process.waits(); waits {
		packet := append([]byte(nil), b...)
		go func() {
			<-resumed
			s.WriteTo(packet, addr)
		}()
		return len(b), nil
	} else if resumed != nil { // it is lost, as no lock may be held while virtual time passes
		return len(b), nil
	}
	w, err := s.way(addr.(*net.UDPAddr).AddrPort())
	if err != nil {
		return 0, err
	}
	packet := append([]byte(nil), b...)
	s.process.record(packet, addr)
	if s.passes(w.port, packet) {
		w.conn.WriteTo(packet, addr)
	}
	return len(b), nil
}

func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		s.mu.Lock()
		expired := s.expired
		s.mu.Unlock()
		arrived, resumed := s.received, s.process.halted()
		if resumed != nil {
			arrived = nil // what arrives waits
		}
		select {
		case <-resumed:
		case r := <-arrived:
			return copy(b, r.data), r.from, nil
		case <-s.closed:
			return 0, nil, net.ErrClosed
		case <-expired:
			s.mu.Lock()
			still := s.expired == expired
			s.mu.Unlock()
			if still {
				return 0, nil, errTimeout
			}
		}
	}
}

var errTimeout net.Error = timeout{}

type timeout struct{}

func (timeout) Error() string   { return "deadline exceeded" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func (s *socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deadline != nil {
		s.deadline.Stop()
		s.deadline = nil
	}
	select {
	case <-s.expired:
	default:
		close(s.expired) // readers look again
	}
	s.expired = make(chan struct{})
	if !t.IsZero() {
		expired := s.expired
		s.deadline = time.AfterFunc(max(0, time.Until(t)), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.expired == expired {
				close(expired)
			}
		})
	}
	return nil
}

func (s *socket) Close() error {
	s.once.Do(func() {
		s.process.forget(s)
		close(s.closed)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, w := range s.ways {
			w.conn.Close()
		}
		if s.deadline != nil {
			s.deadline.Stop()
		}
	})
	return nil
}

func (s *socket) LocalAddr() net.Addr              { return &net.UDPAddr{IP: net.IPv6zero, Port: 1} }
func (s *socket) SetDeadline(t time.Time) error    { return s.SetReadDeadline(t) }
func (s *socket) SetWriteDeadline(time.Time) error { return nil }

// A stream is a TCP connection of a client.
type stream struct {
	net.Conn
	process *process
	port    *port
	closed  chan struct{}
	once    sync.Once
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	select {
	case <-s.closed:
	case <-s.process.continued():
	}
	s.process.machine.world.net.Do(func() { // TCP's checksum misses some of what changes
		if s.port.corrupts > 0 && n > 0 && rand.Float64() < s.port.corrupts/100 {
			b[rand.IntN(n)] ^= 1
		}
	})
	return n, err
}

func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	s.process.forget(s)
	return s.Conn.Close()
}

// CloseWrite ends the stream in this direction.
func (s *stream) CloseWrite() error {
	if c, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}
