package netem

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
)

// ones returns the sum of 16-bit words modulo 65535, the plain way.
func ones(b []byte) int {
	if len(b)%2 != 0 {
		b = append(slices.Clone(b), 0)
	}
	total := 0
	for i := 0; i < len(b); i += 2 {
		total += int(b[i])<<8 | int(b[i+1])
	}
	return total % 0xffff
}

// checkSums fails unless the checksums of a packet are right: with them, each sum
// is 0 modulo 65535 (RFC 1071).
func checkSums(t *testing.T, packet []byte) {
	t.Helper()
	header := int(packet[0]&15) * 4
	if got := ones(packet[:header]); got != 0 {
		t.Errorf("IPv4 checksum is off by %d", got)
	}
	segment := packet[header:]
	if packet[9] == udp && segment[6] == 0 && segment[7] == 0 {
		return
	}
	if got := ones(pseudo(packet)); got != 0 {
		t.Errorf("checksum of protocol %d is off by %d", packet[9], got)
	}
}

// pseudo returns what the checksum of TCP or UDP is of (RFC 768, RFC 9293).
func pseudo(packet []byte) []byte {
	segment := packet[int(packet[0]&15)*4:]
	size := binary.BigEndian.AppendUint16(nil, uint16(len(segment)))
	return slices.Concat(packet[12:20], []byte{0, packet[9]}, size, segment)
}

// udpPacket returns a packet with right checksums. Options lengthen the header.
func udpPacket(from, to netip.AddrPort, options, payload []byte) []byte {
	b := make([]byte, 20, 128)
	b[0] = 0x40 | byte(20+len(options))/4
	b[8], b[9] = 64, 17
	copy(b[12:], from.Addr().AsSlice())
	copy(b[16:], to.Addr().AsSlice())
	b = append(b, options...)
	header := len(b)
	b = binary.BigEndian.AppendUint16(b, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	b = append(b, 0, 0)
	b = append(b, payload...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[10:], uint16(0xffff-ones(b[:header])))
	binary.BigEndian.PutUint16(b[header+6:], uint16(0xffff-ones(pseudo(b))))
	return b
}

// tcpPacket returns a packet with right checksums.
func tcpPacket(from, to netip.AddrPort, payload []byte) []byte {
	b := udpPacket(from, to, nil, nil)[:20]
	b[9] = tcp
	b[10], b[11] = 0, 0
	b = binary.BigEndian.AppendUint16(b, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	b = append(b, 0, 0, 0, 1, 0, 0, 0, 2, 5<<4, 0x10, 0, 100, 0, 0, 0, 0)
	b = append(b, payload...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[10:], uint16(0xffff-ones(b[:20])))
	binary.BigEndian.PutUint16(b[20+tcpChecksum:], uint16(0xffff-ones(pseudo(b))))
	return b
}

func ends(packet []byte) (from, to netip.AddrPort) {
	ports := packet[int(packet[0]&15)*4:]
	from = netip.AddrPortFrom(netip.AddrFrom4([4]byte(packet[12:])), binary.BigEndian.Uint16(ports))
	to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(packet[16:])), binary.BigEndian.Uint16(ports[2:]))
	return from, to
}

var (
	private = netip.MustParseAddrPort("10.0.1.2:5000")
	other   = netip.MustParseAddrPort("10.0.1.3:5000")
	server  = netip.MustParseAddrPort("10.0.0.1:4433")
	public  = netip.MustParseAddr("192.0.2.7")
)

// wantPass fails unless a packet gets out and its answer in.
func wantPass(t *testing.T, n *nat, outside netip.AddrPort, packet func(from, to netip.AddrPort) []byte) {
	t.Helper()
	out, in := packet(private, server), packet(server, outside)
	checkSums(t, out)
	if !n.out(out) || !n.in(in) {
		t.Fatal("a packet, or its answer, is dropped")
	}
	checkSums(t, out)
	checkSums(t, in)
	if from, to := ends(out); from != outside || to != server {
		t.Errorf("%v -> %v outside, want %v -> %v", from, to, outside, server)
	}
	if from, to := ends(in); from != server || to != private {
		t.Errorf("%v -> %v inside, want %v -> %v", from, to, server, private)
	}
}

func TestNAT(t *testing.T) {
	n := newNAT(public)
	for _, payload := range [][]byte{nil, {1}, []byte("hello"), slices.Repeat([]byte{0xff}, 60)} {
		for _, options := range [][]byte{nil, {1, 1, 1, 1}} {
			wantPass(t, n, netip.AddrPortFrom(public, firstPublic), func(from, to netip.AddrPort) []byte {
				return udpPacket(from, to, options, payload)
			})
		}
	}
	packet := udpPacket(other, server, nil, nil)
	n.out(packet)
	if from, _ := ends(packet); from.Port() != firstPublic+1 {
		t.Errorf("another socket has public port %d, want %d", from.Port(), firstPublic+1)
	}
}

// TCP and UDP from the same place have mappings of their own.
func TestNATOfTCP(t *testing.T) {
	n := newNAT(public)
	n.out(udpPacket(private, server, nil, nil))
	for _, payload := range [][]byte{nil, {1}, slices.Repeat([]byte{0xff}, 60)} {
		outside := netip.AddrPortFrom(public, firstPublic+1)
		wantPass(t, n, outside, func(from, to netip.AddrPort) []byte { return tcpPacket(from, to, payload) })
		if n.in(udpPacket(server, outside, nil, nil)) {
			t.Error("UDP gets in on a mapping of TCP")
		}
	}
}

func TestNATForget(t *testing.T) {
	n := newNAT(public)
	packet := udpPacket(private, server, nil, nil)
	n.out(packet)
	before, _ := ends(packet)
	n.forget()
	if n.in(udpPacket(server, before, nil, nil)) {
		t.Error("a packet on a mapping that is forgotten got in")
	}
	packet = udpPacket(private, server, nil, nil)
	n.out(packet)
	after, _ := ends(packet)
	if before == after {
		t.Errorf("%v is used again", before)
	}
	if !n.in(udpPacket(server, after, nil, nil)) {
		t.Error("no packet gets in on the new mapping")
	}
}

// A checksum of 0 means that there is none, and stays. One that comes to 0 is
// written as 65535.
func TestNATZeroChecksum(t *testing.T) {
	n := newNAT(public)
	packet := udpPacket(private, server, nil, []byte("x"))
	packet[26], packet[27] = 0, 0
	n.out(packet)
	checkSums(t, packet)
	if packet[26] != 0 || packet[27] != 0 {
		t.Error("a checksum came from nowhere")
	}
	for word := range 1 << 16 { // one of them comes to 0
		packet := udpPacket(private, server, nil, []byte{byte(word >> 8), byte(word)})
		n.out(packet)
		if packet[26] == 0 && packet[27] == 0 {
			t.Fatalf("payload %04x has no checksum any more", word)
		}
		checkSums(t, packet)
	}
}

func TestNATDrops(t *testing.T) {
	n := newNAT(public)
	for _, whole := range [][]byte{udpPacket(private, server, nil, nil), tcpPacket(private, server, nil)} {
		for size := 1; size < len(whole); size++ {
			if n.out(slices.Clone(whole[:size])) {
				t.Errorf("the first %d bytes of a packet passed", size)
			}
		}
		icmp, fragment := slices.Clone(whole), slices.Clone(whole)
		icmp[9] = 1
		fragment[7] = 1
		if n.out(icmp) || n.out(fragment) {
			t.Error("ICMP or a fragment passed")
		}
	}
	if !n.out([]byte{0x60}) || !n.in([]byte{0x60}) {
		t.Error("IPv6 did not pass")
	}
}
