//go:build !race

package quic

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// Addresses that a socket can send to come back as they are; a name of a zone is for the standard
// library.
func TestAddresses(t *testing.T) {
	v4, v6 := &batch{family: unix.AF_INET}, &batch{family: unix.AF_INET6}
	for _, c := range []struct {
		socket *batch
		to     net.UDPAddr
		want   string // or nothing, if the standard library sends
	}{
		{v4, net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4433}, "192.0.2.1:4433"},
		{v4, net.UDPAddr{IP: net.ParseIP("2001:db8::1"), Port: 4433}, ""},
		{v6, net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4433}, "192.0.2.1:4433"},
		{v6, net.UDPAddr{IP: net.ParseIP("2001:db8::1"), Port: 1}, "[2001:db8::1]:1"},
		{v6, net.UDPAddr{IP: net.ParseIP("fe80::1"), Port: 2, Zone: "3"}, "[fe80::1%3]:2"},
		{v6, net.UDPAddr{IP: net.ParseIP("fe80::1"), Port: 2, Zone: "eth0"}, ""},
		{v6, net.UDPAddr{Port: 2}, ""},
	} {
		var a address
		_, ok := c.socket.encode(&a, &c.to)
		if !ok {
			if c.want != "" {
				t.Errorf("%v cannot be encoded", c.to)
			}
			continue
		}
		if got := udpAddr(&a).String(); got != c.want {
			t.Errorf("%v comes back as %q, want %q", c.to, got, c.want)
		}
	}
}

// Packets that the kernel has coalesced come one by one, also if fewer are asked for than there are.
func TestCoalesced(t *testing.T) {
	t.Parallel()
	var sockets [2]*net.UDPConn
	for i := range sockets {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		sockets[i] = c
	}
	sockets[1].SetDeadline(time.Now().Add(20 * time.Second))
	from, err := newBatch(sockets[0], false)
	if err != nil {
		t.Fatal(err)
	}
	to, err := newBatch(sockets[1], true)
	if err != nil {
		t.Fatal(err)
	}
	segment := make([]byte, unix.CmsgSpace(2)) // split into packets of 1000 bytes
	h := (*unix.Cmsghdr)(unsafe.Pointer(&segment[0]))
	h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(segment[unix.CmsgLen(0):], 1000)
	var want []byte
	for i := range 4500 {
		want = append(want, byte(i*i))
	}
	addr := sockets[1].LocalAddr().(*net.UDPAddr)
	if err := from.send(want, segment, addr); err != nil {
		t.Skip("the kernel sends no batches: ", err)
	}
	if err := from.send([]byte("alone"), nil, addr); err != nil {
		t.Fatal(err)
	}
	want = append(want, "alone"...)
	var got []byte
	var sizes []int
	for len(got) < len(want) {
		messages := make([]ipv4.Message, 3)
		for i := range messages {
			messages[i].Buffers, messages[i].OOB = [][]byte{make([]byte, 1452)}, make([]byte, 128)
		}
		n, err := to.receive(messages)
		if err != nil {
			t.Fatalf("after packets of %v bytes: %v", sizes, err)
		}
		for _, m := range messages[:n] {
			if m.Addr.String() != sockets[0].LocalAddr().String() {
				t.Errorf("a packet is from %v", m.Addr)
			}
			got, sizes = append(got, m.Buffers[0][:m.N]...), append(sizes, m.N)
		}
	}
	if !bytes.Equal(got, want) || !slices.Equal(sizes, []int{1000, 1000, 1000, 1000, 500, 5}) {
		t.Errorf("packets of %v bytes came, want the five of a batch and one", sizes)
	}
}
