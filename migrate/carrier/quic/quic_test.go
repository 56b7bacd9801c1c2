package quic_test

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

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
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
	listener, err := quic.Listen(&quic.Socket{UDPConn: udp}, quic.ListenConfig{TLS: serverTLS(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		listener.Close()
		udp.Close()
	})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	socket, err := quic.ListenUDP("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := quic.Dial(ctx, socket, udp.LocalAddr().(*net.UDPAddr).AddrPort(), clientTLS())
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
	s, err := conn.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return c, s
}

// A client's carrier knows when a packet arrived last.
func TestLastReceived(t *testing.T) {
	client, server := quicPair(t)
	defer client.Close()
	defer server.Close()
	sent := time.Now()
	if _, err := server.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if at := client.(carrier.StatsReader).Stats().LastReceived; at.Before(sent) || at.After(time.Now()) {
		t.Errorf("last packet received %v after it was sent", at.Sub(sent))
	}
}

// A packet that the network refuses is lost, and does not end the connection.
func TestSocketSwallowsErrors(t *testing.T) {
	socket, err := quic.ListenUDP("")
	if err != nil {
		t.Fatal(err)
	}
	s := socket.(*quic.Socket)
	// The kernel refuses to send to port 0.
	nowhere := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}
	if n, err := s.WriteTo([]byte("lost"), nowhere); n != 4 || err != nil {
		t.Errorf("WriteTo = %d, %v; want it to look as if it was sent", n, err)
	}
	if n, _, err := s.WriteMsgUDP([]byte("lost"), nil, nowhere); n != 4 || err != nil {
		t.Errorf("WriteMsgUDP = %d, %v; want it to look as if it was sent", n, err)
	}
	somewhere := s.LocalAddr().(*net.UDPAddr)
	somewhere.IP = net.IPv4(127, 0, 0, 1)
	if _, err := s.WriteTo(make([]byte, 70_000), somewhere); !errors.Is(err, syscall.EMSGSIZE) {
		t.Errorf("a packet that is too large: %v, want EMSGSIZE, which quic-go handles", err)
	}
	s.Close()
	if _, err := s.WriteTo([]byte("x"), somewhere); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v, want net.ErrClosed", err)
	}
}
