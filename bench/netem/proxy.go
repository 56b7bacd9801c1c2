package netem

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// maxPacket is larger than any UDP packet that is passed on.
const maxPacket = 64 << 10

// A Proxy is between UDP clients and a server, with a link each way that all clients
// share. To the server each client has an address of its own, as behind a NAT.
type Proxy struct {
	server netip.AddrPort
	front  *net.UDPConn

	mu sync.Mutex
	duplex
	flows  map[netip.AddrPort]*net.UDPConn // to the server, by client
	closed bool

	under *underway
	wg    sync.WaitGroup
}

// NewProxy returns a proxy for a server, that listens on a free port of the
// loopback interface and runs until Close.
func NewProxy(server netip.AddrPort, cfg Config, seed uint64) (*Proxy, error) {
	front, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		server: server,
		front:  front,
		flows:  make(map[netip.AddrPort]*net.UDPConn),
		under:  newUnderway(),
	}
	p.duplex = newDuplex(&p.mu, cfg, seed)
	p.under.nap = nap
	p.wg.Go(p.readClients)
	p.wg.Go(p.under.deliver)
	return p, nil
}

// Addr returns where clients reach the proxy.
func (p *Proxy) Addr() netip.AddrPort { return p.front.LocalAddr().(*net.UDPAddr).AddrPort() }

// Rebind forgets the addresses of clients, as a NAT does. What the server sends to the old
// ones is lost.
func (p *Proxy) Rebind() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client, c := range p.flows {
		c.Close()
		delete(p.flows, client)
	}
}

// Close ends the proxy. Nothing of it is left when it returns.
func (p *Proxy) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	for _, c := range p.flows {
		c.Close()
	}
	p.mu.Unlock()
	p.under.close()
	err := p.front.Close()
	p.wg.Wait()
	return err
}

func (p *Proxy) readClients() {
	buf := make([]byte, maxPacket)
	for {
		n, client, err := p.front.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		c, err := p.flow(client)
		if err != nil {
			continue // out of sockets, or closed: the packet is lost
		}
		p.send(p.up, &p.arrived.up, buf[:n], func(b []byte) { c.Write(b) })
	}
}

// flow returns the socket that a client's packets go through to the server.
func (p *Proxy) flow(client netip.AddrPort) (*net.UDPConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, net.ErrClosed
	}
	if c := p.flows[client]; c != nil {
		return c, nil
	}
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(p.server))
	if err != nil {
		return nil, err
	}
	p.flows[client] = c
	p.wg.Go(func() { p.readServer(client, c) })
	return c, nil
}

func (p *Proxy) readServer(client netip.AddrPort, c *net.UDPConn) {
	buf := make([]byte, maxPacket)
	for {
		n, err := c.Read(buf)
		if err != nil {
			p.mu.Lock()
			gone := p.closed || p.flows[client] != c
			p.mu.Unlock()
			if gone {
				return
			}
			continue // the server does not listen; it may later
		}
		p.send(p.down, &p.arrived.down, buf[:n], func(b []byte) { p.front.WriteToUDPAddrPort(b, client) })
	}
}

// send puts a packet on a link, and counts its bytes when it arrives.
func (p *Proxy) send(l *Link, arrived *uint64, b []byte, out func([]byte)) {
	packet := append([]byte(nil), b...)
	p.mu.Lock()
	arrivals := l.Send(time.Now(), len(b))
	p.mu.Unlock()
	for _, at := range arrivals {
		p.under.add(at, func() {
			p.mu.Lock()
			*arrived += uint64(len(packet))
			p.mu.Unlock()
			out(packet)
		})
	}
}
