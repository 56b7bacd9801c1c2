package netem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// A Router joins interfaces in network namespaces. A packet goes to the interface whose
// network has its destination, over the links of both.
type Router struct {
	mu    sync.Mutex
	ports []*Port
	seed  uint64

	under *underway
	wg    sync.WaitGroup
}

// A Port is the router's end of an interface.
type Port struct {
	router   *Router
	tun      *os.File
	networks []netip.Prefix
	nat      *nat // between the interface and the router, or nil
	blocked  byte // a protocol over IP, or 0
	only     uint16
	duplex
}

// NewRouter returns a router without interfaces. The same seed makes the same
// losses.
func NewRouter(seed uint64) *Router {
	r := &Router{seed: seed, under: newUnderway()}
	r.under.nap = nap
	r.wg.Go(r.under.deliver)
	return r
}

// Attach makes an interface whose packets the router forwards. It is a TUN device
// of this namespace, to be moved to another, given addresses of the networks and
// set up.
func (r *Router) Attach(name string, cfg Config, networks ...netip.Prefix) (*Port, error) {
	tun, err := openTUN(name)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seed += 2
	p := &Port{router: r, tun: tun, networks: networks, duplex: newDuplex(&r.mu, cfg, r.seed)}
	r.ports = append(r.ports, p)
	r.wg.Go(p.read)
	return p, nil
}

// Translate puts a NAT behind the port: UDP and TCP over IPv4 reach the other interfaces
// from a public address, which must be in one of the port's networks, and from a port that
// the NAT chooses.
func (p *Port) Translate(public netip.Addr) {
	p.router.mu.Lock()
	defer p.router.mu.Unlock()
	p.nat = newNAT(public)
}

// Forget drops all mappings of the NAT. Packets to the old public ports are dropped, and
// later packets come from new ones.
func (p *Port) Forget() {
	p.router.mu.Lock()
	defer p.router.mu.Unlock()
	p.nat.forget()
}

// Block makes the port drop the packets of a protocol over IP, such as syscall.IPPROTO_UDP, in both directions from now
// on, and pass those of others. 0 passes all. Nothing tells the sender.
func (p *Port) Block(protocol byte) {
	p.router.mu.Lock()
	defer p.router.mu.Unlock()
	p.blocked = protocol
}

// Only makes the port drop all packets except those of TCP to or from a port, in both directions from now on, as some
// networks do. 0 passes all. Nothing tells the sender.
func (p *Port) Only(port uint16) {
	p.router.mu.Lock()
	defer p.router.mu.Unlock()
	p.only = port
}

// drops reports whether the port drops a packet.
func (p *Port) drops(packet []byte) bool {
	protocol, header := protocolOf(packet), 40
	if packet[0]>>4 == 4 {
		header = int(packet[0]&15) * 4
	}
	if p.only != 0 {
		if protocol != syscall.IPPROTO_TCP || len(packet) < header+4 {
			return true
		}
		ports := packet[header:]
		return binary.BigEndian.Uint16(ports) != p.only && binary.BigEndian.Uint16(ports[2:]) != p.only
	}
	return protocol != 0 && protocol == p.blocked
}

// Close removes all interfaces and ends the router.
func (r *Router) Close() error {
	r.mu.Lock()
	var err error
	for _, p := range r.ports {
		err = errors.Join(err, p.tun.Close())
	}
	r.mu.Unlock()
	r.under.close()
	r.wg.Wait()
	return err
}

func (p *Port) read() {
	buf := make([]byte, maxPacket)
	for {
		n, err := p.tun.Read(buf)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(time.Millisecond) // the interface is down; it may come up
			continue
		}
		if to, err := destination(buf[:n]); err == nil {
			p.router.forward(p, to, append([]byte(nil), buf[:n]...))
		}
	}
}

// forward puts a packet on the links on its way.
func (r *Router) forward(from *Port, to netip.Addr, packet []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.port(to)
	if out == nil || out == from {
		return
	}
	if from.drops(packet) || out.drops(packet) {
		return
	}
	if from.nat != nil && !from.nat.out(packet) {
		return
	}
	for _, at := range from.up.Send(time.Now(), len(packet)) {
		for _, at := range out.down.Send(at, len(packet)) {
			r.under.add(at, func() { r.deliver(from, out, append([]byte(nil), packet...)) })
		}
	}
}

// deliver delivers a packet to a port. The router may change its bytes.
func (r *Router) deliver(from, out *Port, packet []byte) {
	r.mu.Lock()
	passes := out.nat == nil || out.nat.in(packet)
	from.arrived.up += uint64(len(packet))
	if passes {
		out.arrived.down += uint64(len(packet))
	}
	r.mu.Unlock()
	if passes {
		out.tun.Write(packet) // lost if the interface is down
	}
}

func (r *Router) port(to netip.Addr) *Port {
	for _, p := range r.ports {
		for _, n := range p.networks {
			if n.Contains(to) {
				return p
			}
		}
	}
	return nil
}

// protocolOf returns the protocol that an IP packet carries. IPv6 extension headers are not looked into.
func protocolOf(b []byte) byte {
	if b[0]>>4 == 4 {
		return b[9]
	}
	return b[6]
}

// destination returns where an IP packet wants to go (RFC 791, RFC 8200).
func destination(b []byte) (netip.Addr, error) {
	if len(b) >= 20 && b[0]>>4 == 4 {
		return netip.AddrFrom4([4]byte(b[16:20])), nil
	}
	if len(b) >= 40 && b[0]>>4 == 6 {
		return netip.AddrFrom16([16]byte(b[24:40])), nil
	}
	return netip.Addr{}, fmt.Errorf("not an IP packet: %d bytes", len(b))
}
