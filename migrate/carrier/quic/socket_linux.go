//go:build !race

package quic

import (
	"encoding/binary"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/nonblock"
)

// A batch moves the packets of a UDP socket as the standard library does, but with calls of package nonblock.
type batch struct {
	conn   *net.UDPConn
	raw    syscall.RawConn
	family uint16

	// Of the one goroutine that receives.
	received [maxBatch]struct {
		header unix.Msghdr // begins the kernel's struct mmsghdr
		length uint32
	}
	buffers [maxBatch]unix.Iovec
	senders [maxBatch]address

	// What the kernel has coalesced, and is not returned yet; nil if it is not to.
	coalesced []byte
	control   [controlSize]byte
	rest      []byte // of coalesced
	segment   int    // bytes of each packet in rest, but the last
	oob       []byte // of control, for each of them
	sender    *net.UDPAddr
}

const (
	// maxCoalesced is more than the kernel coalesces: what an IP packet can carry.
	maxCoalesced = 64 << 10

	// controlSize is more than the ancillary data that quic-go asks for.
	controlSize = 256
)

// maxBatch is how many packets quic-go asks for at once.
const maxBatch = 8

// An address is an address of either family as the kernel has it.
type address = unix.RawSockaddrInet6

// outgoing is what the kernel reads of a packet that is sent.
type outgoing struct {
	header unix.Msghdr
	buffer unix.Iovec
	to     address
}

var outgoings = sync.Pool{New: func() any { return new(outgoing) }}

// newBatch returns the batch of a socket. If coalesce is set, the kernel may give it packets of a burst as one.
// That takes memory, and calls for packets that do not come in bursts.
func newBatch(conn *net.UDPConn, coalesce bool) (*batch, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	b := &batch{conn: conn, raw: raw}
	closed := raw.Control(func(fd uintptr) {
		var family int
		family, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN)
		b.family = uint16(family)
		if coalesce && unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil {
			b.coalesced = make([]byte, maxCoalesced)
		}
	})
	if closed != nil {
		return nil, closed
	}
	return b, os.NewSyscallError("getsockopt", err)
}

// receive is the ReadBatch of package ipv4, for messages of one buffer.
func (s *batch) receive(messages []ipv4.Message) (n int, err error) {
	if s.coalesced != nil {
		return s.receiveCoalesced(messages)
	}
	messages = messages[:min(len(messages), maxBatch)]
	for i, m := range messages {
		s.prepare(i, m.Buffers[0], m.OOB)
	}
	if n, err = s.call(len(messages)); err != nil {
		return 0, err
	}
	for i := range n {
		r, m := &s.received[i], &messages[i]
		m.N, m.NN, m.Flags = int(r.length), int(r.header.Controllen), int(r.header.Flags)
		m.Addr = udpAddr(&s.senders[i])
	}
	return n, nil
}

// receiveCoalesced is receive for packets that the kernel may have coalesced.
func (s *batch) receiveCoalesced(messages []ipv4.Message) (n int, err error) {
	if len(s.rest) == 0 {
		s.prepare(0, s.coalesced, s.control[:])
		if _, err := s.call(1); err != nil {
			return 0, err
		}
		s.rest, s.oob = s.coalesced[:s.received[0].length], s.control[:s.received[0].header.Controllen]
		s.segment, s.sender = len(s.rest), udpAddr(&s.senders[0])
		s.takeSegment()
	}
	for n < len(messages) && (n == 0 || len(s.rest) > 0) { // a packet may be empty
		m, size := &messages[n], min(s.segment, len(s.rest))
		m.N, m.NN, m.Flags, m.Addr = copy(m.Buffers[0], s.rest[:size]), copy(m.OOB, s.oob), 0, s.sender
		s.rest = s.rest[size:]
		n++
	}
	return n, nil
}

// takeSegment takes the size of the packets from the ancillary data, where the kernel puts it first.
func (s *batch) takeSegment() {
	if len(s.oob) < unix.SizeofCmsghdr {
		return
	}
	h, size, behind, err := unix.ParseOneSocketControlMessage(s.oob)
	if err == nil && h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && len(size) >= 4 {
		s.segment, s.oob = int(binary.NativeEndian.Uint32(size)), behind
	}
}

// prepare says where a packet of the next call goes.
func (s *batch) prepare(i int, b, oob []byte) {
	s.buffers[i].Base = unsafe.SliceData(b)
	s.buffers[i].SetLen(len(b))
	h := &s.received[i].header
	*h = unix.Msghdr{
		Name: (*byte)(unsafe.Pointer(&s.senders[i])), Namelen: uint32(unsafe.Sizeof(s.senders[i])),
		Iov: &s.buffers[i], Control: unsafe.SliceData(oob),
	}
	h.SetIovlen(1)
	h.SetControllen(len(oob))
}

// call receives up to count packets.
func (s *batch) call(count int) (n int, err error) {
	var errno syscall.Errno
	closed := s.raw.Read(func(fd uintptr) bool {
		var received uintptr
		received, errno = nonblock.Call(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&s.received)), uintptr(count),
			unix.MSG_DONTWAIT, 0, 0)
		n = int(received)
		return errno != unix.EAGAIN
	})
	switch {
	case closed != nil:
		return 0, closed
	case errno != 0:
		return 0, &net.OpError{Op: "read", Net: "udp", Source: s.conn.LocalAddr(), Err: os.NewSyscallError("recvmmsg", errno)}
	}
	return n, nil
}

// send sends a packet. An address whose zone is a name it leaves to the standard library.
func (s *batch) send(b, oob []byte, to *net.UDPAddr) error {
	o := outgoings.Get().(*outgoing)
	defer outgoings.Put(o)
	length, ok := s.encode(&o.to, to)
	if !ok {
		_, _, err := s.conn.WriteMsgUDP(b, oob, to)
		return err
	}
	o.buffer.Base = unsafe.SliceData(b)
	o.buffer.SetLen(len(b))
	o.header = unix.Msghdr{
		Name: (*byte)(unsafe.Pointer(&o.to)), Namelen: length, Iov: &o.buffer, Control: unsafe.SliceData(oob),
	}
	o.header.SetIovlen(1)
	o.header.SetControllen(len(oob))
	var errno syscall.Errno
	closed := s.raw.Write(func(fd uintptr) bool {
		_, errno = nonblock.Call(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&o.header)), 0, 0, 0, 0)
		return errno != unix.EAGAIN
	})
	o.header, o.buffer = unix.Msghdr{}, unix.Iovec{} // keep nothing of the packet
	if closed != nil {
		return closed
	}
	if errno != 0 {
		return os.NewSyscallError("sendmsg", errno)
	}
	return nil
}

// encode writes an address for a socket of this family, and returns its length.
func (s *batch) encode(a *address, to *net.UDPAddr) (length uint32, ok bool) {
	if s.family == unix.AF_INET {
		ip := to.IP.To4()
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(a))
		*v4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: swapped(uint16(to.Port))}
		copy(v4.Addr[:], ip)
		return uint32(unsafe.Sizeof(*v4)), ip != nil
	}
	*a = address{Family: unix.AF_INET6, Port: swapped(uint16(to.Port))}
	ip := to.IP.To16()
	copy(a.Addr[:], ip)
	if to.Zone != "" {
		index, err := strconv.ParseUint(to.Zone, 10, 32)
		if err != nil {
			return 0, false
		}
		a.Scope_id = uint32(index)
	}
	return uint32(unsafe.Sizeof(*a)), ip != nil
}

// udpAddr decodes an address. Its zone is a number.
func udpAddr(a *address) *net.UDPAddr {
	if a.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(a))
		return &net.UDPAddr{IP: append(net.IP(nil), v4.Addr[:]...), Port: int(swapped(v4.Port))}
	}
	addr := &net.UDPAddr{IP: append(net.IP(nil), a.Addr[:]...), Port: int(swapped(a.Port))}
	if a.Scope_id != 0 {
		addr.Zone = strconv.FormatUint(uint64(a.Scope_id), 10)
	}
	return addr
}

// swapped changes a port between the order of this machine and that of the network.
func swapped(port uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], port)
	return binary.NativeEndian.Uint16(b[:])
}
