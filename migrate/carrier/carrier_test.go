package carrier_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
)

func TestQUIC(t *testing.T) {
	carriertest.Run(t, quicPair)
}

func serverTLS(t *testing.T) *tls.Config {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// A session is not resumed when its certificate has expired.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{
		NextProtos:   []string{"test"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}},
	}
}

func clientTLS() *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true,
		NextProtos:         []string{"test"},
		ServerName:         "test",
		ClientSessionCache: tls.NewLRUClientSessionCache(1),
	}
}

// quicPair returns a carrier over the loopback interface.
func quicPair(t *testing.T) (client, server carrier.Carrier) {
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	transport := &quic.Transport{Conn: &carrier.Socket{UDPConn: udp}}
	t.Cleanup(func() {
		transport.Close()
		udp.Close()
	})
	listener, err := transport.Listen(serverTLS(t), carrier.ServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	socket, err := carrier.ListenUDP("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := carrier.DialQUIC(ctx, socket, udp.LocalAddr().(*net.UDPAddr).AddrPort(), clientTLS())
	if err != nil {
		t.Fatal(err)
	}
	// A stream exists for the server when something was sent on it.
	if _, err := c.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := conn.AcceptStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := carrier.AcceptQUIC(conn, stream)
	if _, err := s.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return c, s
}

// Paths can come to carry less than they did, but for those that do not leave the
// machine.
func TestServerSendsWhatEveryPathCarries(t *testing.T) {
	conf := carrier.ServerConfig()
	for addr, want := range map[string]bool{
		"10.1.0.2": true, "2001:db8::1": true, "::ffff:10.1.0.2": true,
		"127.0.0.1": false, "::1": false, "::ffff:127.0.0.1": false,
	} {
		client := &quic.ClientInfo{RemoteAddr: &net.UDPAddr{IP: net.ParseIP(addr), Port: 4433}}
		c, err := conf.GetConfigForClient(client)
		if err != nil {
			t.Fatal(err)
		}
		if c.InitialPacketSize != 1200 || c.DisablePathMTUDiscovery != want {
			t.Errorf("%s: packets of %d bytes, larger ones: %v", addr, c.InitialPacketSize, !c.DisablePathMTUDiscovery)
		}
	}
}

// What the network refuses is lost, and no reason to give a connection up.
func TestSocketSwallowsErrors(t *testing.T) {
	socket, err := carrier.ListenUDP("")
	if err != nil {
		t.Fatal(err)
	}
	s := socket.(*carrier.Socket)
	// Nobody may send to port 0.
	nowhere := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}
	if n, err := s.WriteTo([]byte("lost"), nowhere); n != 4 || err != nil {
		t.Errorf("WriteTo = %d, %v; want it to look sent", n, err)
	}
	if n, _, err := s.WriteMsgUDP([]byte("lost"), nil, nowhere); n != 4 || err != nil {
		t.Errorf("WriteMsgUDP = %d, %v; want it to look sent", n, err)
	}
	somewhere := s.LocalAddr().(*net.UDPAddr)
	somewhere.IP = net.IPv4(127, 0, 0, 1)
	if _, err := s.WriteTo(make([]byte, 70_000), somewhere); !errors.Is(err, syscall.EMSGSIZE) {
		t.Errorf("a packet that is too large: %v, want EMSGSIZE, which quic-go can mend", err)
	}
	s.Close()
	if _, err := s.WriteTo([]byte("x"), somewhere); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v, want net.ErrClosed", err)
	}
}
