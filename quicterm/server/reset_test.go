//go:build linux || darwin

package server

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"
)

// A packet of a connection that a socket does not know is answered with a token, which ends the connection. The token
// of another socket would end one that lives there. The next daemon has the same for the same socket.
func TestResetKeyOfEachSocket(t *testing.T) {
	onHost(t, func(h *host) {
		other := netip.AddrPortFrom(serverAddr.Addr(), serverAddr.Port()+1)
		h.stop()
		h.serve(other)
		socket := h.net.Listen(netip.AddrPortFrom(intruder, 1))
		defer socket.Close()
		packet := bytes.Repeat([]byte{0x40}, 100) // with a connection's id
		token := func(at netip.AddrPort) string {
			t.Helper()
			if _, err := socket.WriteTo(packet, net.UDPAddrFromAddrPort(at)); err != nil {
				t.Fatal(err)
			}
			socket.SetReadDeadline(time.Now().Add(patience))
			answer := make([]byte, 1500)
			n, _, err := socket.ReadFrom(answer)
			if err != nil {
				t.Fatal(err)
			}
			return string(answer[max(0, n-16):n])
		}
		first := token(serverAddr)
		if token(other) == first {
			t.Error("two sockets reset a connection alike")
		}
		h.stop()
		h.serve(other)
		if token(serverAddr) != first {
			t.Error("the next daemon cannot reset connections of the last one")
		}
	})
}
