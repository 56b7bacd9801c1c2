package quic_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
)

// A server answers a packet of no connection. What is no server, or does not answer for another
// reason, does not.
func TestKnock(t *testing.T) {
	listen := func() *net.UDPConn {
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	served, silent := listen(), listen()
	l, err := quic.Listen(served, quic.ListenConfig{TLS: serverTLS(t), ResetKey: &[32]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, test := range []struct {
		to   *net.UDPConn
		size int
		want bool
	}{{served, 100, true}, {served, 1200, true}, {silent, 100, false}} {
		socket, err := quic.ListenUDP("")
		if err != nil {
			t.Fatal(err)
		}
		got, err := quic.Knock(t.Context(), socket, test.to.LocalAddr().(*net.UDPAddr).AddrPort(), test.size)
		if got != test.want || err != nil {
			t.Errorf("%d bytes to %v: %v, %v; want %v", test.size, test.to.LocalAddr(), got, err, test.want)
		}
		socket.Close()
	}
}
