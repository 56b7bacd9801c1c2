package quic_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

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
		to := test.to.LocalAddr().(*net.UDPAddr).AddrPort()
		got, err := quic.Knock(t.Context(), socket, to, test.size)
		for start := time.Now(); test.want && !got && err == nil && time.Since(start) < 20*time.Second; { // a busy machine
			got, err = quic.Knock(t.Context(), socket, to, test.size)
		}
		if got != test.want || err != nil {
			t.Errorf("%d bytes to %v: %v, %v; want %v", test.size, test.to.LocalAddr(), got, err, test.want)
		}
		socket.Close()
	}
}
