package quic

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
)

func TestBegins(t *testing.T) {
	rest := strings.Repeat("x", 1195)
	for _, test := range []struct {
		packet string
		want   bool
	}{
		{"\xc3\x00\x00\x00\x01" + rest, true}, // an Initial
		{"\xc3\x0a\x0a\x0a\x0a" + rest, true}, // of another version
		{"\xe3\x0a\x0a\x0a\x0a" + rest, true},
		{"\xd3\x00\x00\x00\x01" + rest, false},     // early data
		{"\xe3\x00\x00\x00\x01" + rest, false},     // the end of a handshake
		{"\x43\x00\x00\x00\x01" + rest, false},     // of a connection
		{"\xc3\x00\x00\x00\x01" + rest[1:], false}, // too small
		{"\xc3\x0a\x0a\x0a\x0a" + rest[1:], false},
		{"", false},
	} {
		if begins([]byte(test.packet)) != test.want {
			t.Errorf("%q: want %v", test.packet, test.want)
		}
	}
}

// What is kept stays as it is, in its order, and buffers stay in their places.
func TestSieve(t *testing.T) {
	initial := "\xc0\x00\x00\x00\x01" + strings.Repeat("x", 1195)
	kinds := []string{"a", initial + "1", initial + "22", "bb", initial + "333", "ccc"}
	var messages []ipv4.Message
	var buffers []*byte
	for i, text := range kinds {
		b, oob := make([]byte, 1452), make([]byte, 1452)
		m := ipv4.Message{Buffers: [][]byte{b}, OOB: oob, N: copy(b, text), NN: copy(oob, text), Flags: i}
		m.Addr = &net.UDPAddr{IP: net.IPv4(10, 0, 0, byte(i)), Port: i}
		messages, buffers = append(messages, m), append(buffers, &b[0])
	}
	s := &sieve{drop: func(client netip.AddrPort) bool { return client.Port() != 2 }}
	want := []int{0, 2, 3, 5}
	if n := s.sift(messages); n != len(want) {
		t.Fatalf("%d packets are kept, want %d", n, len(want))
	}
	for place, i := range want {
		m := messages[place]
		text, oob := string(m.Buffers[0][:m.N]), string(m.OOB[:m.NN])
		if text != kinds[i] || oob != text || m.Flags != i || m.Addr.(*net.UDPAddr).Port != i {
			t.Errorf("packet %d is %q with %q, want %q", place, text, oob, kinds[i])
		}
	}
	for i := range messages {
		if &messages[i].Buffers[0][0] != buffers[i] {
			t.Errorf("buffer %d has moved", i)
		}
	}
}

// A read that ends without a packet, as when a listener closes, returns the error.
func TestSieveReadEnds(t *testing.T) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	packets, err := newBatch(socket, false)
	if err != nil {
		t.Fatal(err)
	}
	s := &sieve{&batchedSocket{batch: packets}, func(netip.AddrPort) bool { return false }}
	if err := socket.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	messages := []ipv4.Message{{Buffers: [][]byte{make([]byte, 1452)}, OOB: make([]byte, 128)}}
	if n, err := s.ReadBatch(messages, 0); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d packets are read (%v)", n, err)
	}
}
