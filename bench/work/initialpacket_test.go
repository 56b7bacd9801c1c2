//go:build linux

package work

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
)

// A server takes our packets for the start of a handshake, validates the address first if it is to, and
// then looks for a certificate: it has read the ClientHello.
func TestInitial(t *testing.T) {
	for _, validates := range []bool{false, true} {
		socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		read := make(chan string, 1)
		l, err := quic.Listen(&quic.Socket{UDPConn: socket}, quic.ListenConfig{
			VerifyAddress: func(netip.AddrPort) bool { return validates },
			TLS: &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
				read <- h.SupportedProtos[0]
				return nil, errors.New("none")
			}, NextProtos: []string{"quicterm/1"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		hello, err := clientHello()
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("udp", socket.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		c.Write(initial(random(idSize), nil, hello))
		if b := make([]byte, 2048); validates {
			n, err := c.Read(b)
			id, token, ok := retried(b[:n])
			if !ok {
				t.Fatalf("%x, %v instead of a Retry", b[:n], err)
			}
			c.Write(initial(id, token, hello))
		}
		select {
		case protocol := <-read:
			if protocol != "quicterm/1" {
				t.Errorf("a ClientHello for %q", protocol)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("the ClientHello is not read; address validated: %v", validates)
		}
	}
}

// A flood has its rate, and ends when its standard input does.
func TestPace(t *testing.T) {
	var n atomic.Int64
	over := make(chan struct{})
	const limit = 300
	pace(10_000, func(int64) {
		if n.Add(1) == limit {
			close(over)
		}
	}, over)
	if n.Load() < limit {
		t.Errorf("%d of %d", n.Load(), limit)
	}
}
