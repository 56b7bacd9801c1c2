package netem

import (
	"encoding/binary"
	"net/netip"
)

// firstPublic is the first port that a NAT hands out: those of IANA's dynamic
// range (RFC 6335, 6).
const firstPublic = 49152

// A nat translates between the private addresses behind a port and one public IPv4
// address. Of IPv4 only UDP and TCP pass, unfragmented. A mapping serves all
// destinations and lets all sources in (RFC 4787, endpoint-independent both
// times), until it is forgotten; its public port is not used again before all
// others were. IPv6 passes as it is.
type nat struct {
	public  netip.Addr
	next    uint16
	ports   map[inside]uint16
	private map[uint16]inside
}

// inside is an end behind the NAT.
type inside struct {
	protocol byte
	addr     netip.AddrPort
}

// Numbers of protocols in IPv4 headers, and where these have their checksums.
const (
	tcp         = 6
	tcpChecksum = 16
	udp         = 17
	udpChecksum = 6
)

func newNAT(public netip.Addr) *nat {
	n := &nat{public: public, next: firstPublic}
	n.forget()
	return n
}

// forget drops all mappings.
func (n *nat) forget() {
	n.ports = make(map[inside]uint16)
	n.private = make(map[uint16]inside)
}

// out translates the source of a packet from the private side in place. It
// reports whether the packet passes.
func (n *nat) out(packet []byte) bool {
	if packet[0]>>4 == 6 {
		return true
	}
	header, ok := transport(packet)
	if !ok {
		return false
	}
	source := inside{packet[9], netip.AddrPortFrom(netip.AddrFrom4([4]byte(packet[12:16])),
		binary.BigEndian.Uint16(header))}
	port := n.ports[source]
	if port == 0 {
		port = n.next
		if n.next++; n.next == 0 {
			n.next = firstPublic
		}
		if old, used := n.private[port]; used {
			delete(n.ports, old)
		}
		n.ports[source] = port
		n.private[port] = source
	}
	rewrite(packet, packet[12:16], header[0:2], netip.AddrPortFrom(n.public, port))
	return true
}

// in translates the destination of a packet from the public side in place. It
// reports whether the packet passes.
func (n *nat) in(packet []byte) bool {
	if packet[0]>>4 == 6 {
		return true
	}
	header, ok := transport(packet)
	if !ok {
		return false
	}
	private, ok := n.private[binary.BigEndian.Uint16(header[2:])]
	if !ok || private.protocol != packet[9] || netip.AddrFrom4([4]byte(packet[16:20])) != n.public {
		return false
	}
	rewrite(packet, packet[16:20], header[2:4], private.addr)
	return true
}

// transport returns the UDP or TCP header of an IPv4 packet that has a whole one,
// and is not a fragment.
func transport(packet []byte) ([]byte, bool) {
	if len(packet) < 20 || binary.BigEndian.Uint16(packet[6:])&0x3fff != 0 {
		return nil, false
	}
	size := 0
	switch packet[9] {
	case udp:
		size = 8
	case tcp:
		size = 20
	default:
		return nil, false
	}
	header := int(packet[0]&0x0f) * 4
	if header < 20 || len(packet) < header+size {
		return nil, false
	}
	return packet[header : header+size], true
}

// rewrite replaces an address and a port within a packet, and adapts the
// checksums of IPv4 and of UDP or TCP to the change.
func rewrite(packet, ip, port []byte, to netip.AddrPort) {
	header := packet[int(packet[0]&0x0f)*4:]
	addr := to.Addr().As4()
	var was, is [6]byte
	copy(was[copy(was[:], ip):], port)
	copy(is[:], addr[:])
	binary.BigEndian.PutUint16(is[4:], to.Port())
	adapt(packet[10:12], was[:4], is[:4])
	if packet[9] == tcp {
		adapt(header[tcpChecksum:], was[:], is[:])
	} else if sum := header[udpChecksum:]; sum[0] != 0 || sum[1] != 0 {
		adapt(sum, was[:], is[:])
		if sum[0] == 0 && sum[1] == 0 { // 0 would mean that there is none (RFC 768)
			sum[0], sum[1] = 0xff, 0xff
		}
	}
	copy(ip, is[:4])
	copy(port, is[4:])
}

// adapt changes an internet checksum for data that changes (RFC 1624, equation 3).
func adapt(sum, was, is []byte) {
	n := uint32(^binary.BigEndian.Uint16(sum))
	for i := 0; i < len(was); i += 2 {
		n += uint32(^binary.BigEndian.Uint16(was[i:])) + uint32(binary.BigEndian.Uint16(is[i:]))
	}
	for n > 0xffff {
		n = n&0xffff + n>>16
	}
	binary.BigEndian.PutUint16(sum, ^uint16(n))
}
