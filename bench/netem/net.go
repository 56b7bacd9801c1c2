package netem

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// A Net is a network in memory, for tests on virtual time (testing/synctest). Its sockets
// are packet conns, and a link decides on each packet. It has streams, too.
type Net struct {
	mu    sync.Mutex
	socks map[netip.AddrPort]*sock
	route func(from, to netip.AddrPort) *Link
	port  uint16

	listeners    map[netip.AddrPort]*streamListener
	routeStreams func(from, to netip.AddrPort) *Link // nil for route
	streams      int                                 // ends that are open

	under *underway
	wg    sync.WaitGroup
}

// NewNet returns a network. Route returns the link that a packet takes, or nil if
// there is none; it is called for one packet at a time.
func NewNet(route func(from, to netip.AddrPort) *Link) *Net {
	n := &Net{
		socks:     make(map[netip.AddrPort]*sock),
		listeners: make(map[netip.AddrPort]*streamListener),
		route:     route,
		port:      10_000,
		under:     newUnderway(),
	}
	n.wg.Go(n.under.deliver)
	return n
}

// Close ends the network. It delivers nothing after that.
func (n *Net) Close() {
	n.under.close()
	n.wg.Wait()
}

// Do calls f while no packet is offered to a link, so that links can be changed.
func (n *Net) Do(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// Listen returns a socket at an address. With port 0 it gets one that no socket
// has had before.
func (n *Net) Listen(addr netip.AddrPort) net.PacketConn {
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr.Port() == 0 {
		n.port++
		addr = netip.AddrPortFrom(addr.Addr(), n.port)
	}
	s := &sock{net: n, addr: addr}
	s.changed = sync.NewCond(&s.mu)
	n.socks[addr] = s
	return s
}

// Sockets returns how many sockets are open.
func (n *Net) Sockets() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.socks)
}

// maxWaiting is how many packets wait to be read. More are dropped, as a kernel does.
const maxWaiting = 1024

type packet struct {
	from netip.AddrPort
	data []byte
}

// A sock is one socket of a Net.
type sock struct {
	net  *Net
	addr netip.AddrPort

	mu       sync.Mutex
	changed  *sync.Cond // of mu
	waiting  []packet
	closed   bool
	deadline time.Time
	timer    *time.Timer
}

func (s *sock) ReadFrom(b []byte) (int, net.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) == 0 {
		if s.closed {
			return 0, nil, net.ErrClosed
		}
		if !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
			return 0, nil, os.ErrDeadlineExceeded
		}
		s.changed.Wait()
	}
	p := s.waiting[0]
	s.waiting = s.waiting[1:]
	return copy(b, p.data), net.UDPAddrFromAddrPort(p.from), nil
}

func (s *sock) WriteTo(b []byte, addr net.Addr) (int, error) {
	to := addr.(*net.UDPAddr).AddrPort()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return 0, net.ErrClosed
	}
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	link := s.net.route(s.addr, to)
	if link == nil {
		return len(b), nil
	}
	p := packet{from: s.addr, data: append([]byte(nil), b...)}
	for _, at := range link.Send(time.Now(), len(b)) {
		s.net.under.add(at, func() { s.net.deliver(to, p) })
	}
	return len(b), nil
}

func (n *Net) deliver(to netip.AddrPort, p packet) {
	n.mu.Lock()
	s := n.socks[to]
	n.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) < maxWaiting {
		s.waiting = append(s.waiting, p)
		s.changed.Broadcast()
	}
}

func (s *sock) Close() error {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if s.net.socks[s.addr] == s {
		delete(s.net.socks, s.addr)
	}
	return nil
}

func (s *sock) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(s.addr) }

func (s *sock) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	if s.timer != nil {
		s.timer.Stop()
	}
	if !t.IsZero() {
		s.timer = time.AfterFunc(time.Until(t), s.changed.Broadcast)
	}
	s.changed.Broadcast()
	return nil
}

// SetReadBuffer and SetWriteBuffer are for quic-go, which warns if it cannot have large
// buffers.
func (s *sock) SetReadBuffer(int) error { return nil }

func (s *sock) SetWriteBuffer(int) error { return nil }

func (s *sock) SetWriteDeadline(time.Time) error { return nil }

func (s *sock) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }
