package netem_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// attach gives a new namespace an interface of a router: address 2 of a network of 24 bits.
func attach(t *testing.T, r *netem.Router, suffix, network string, cfg netem.Config) (*rig.Namespace, *netem.Port) {
	t.Helper()
	name := fmt.Sprintf("qt%d%s", os.Getpid(), suffix)
	p, err := r.Attach(name, cfg, netip.MustParsePrefix(network+"0/24"))
	if err != nil {
		t.Fatal(err)
	}
	ns := rig.NewNamespace(t)
	ns.Take(name, network+"2/32")
	ns.IP("route", "add", "default", "dev", name)
	return ns, p
}

func newRouter(t *testing.T) *netem.Router {
	t.Helper()
	if err := rig.CanNamespace(); err != nil {
		t.Skip(err)
	}
	r := netem.NewRouter(1)
	t.Cleanup(func() { r.Close() })
	return r
}

// A client in a namespace reaches a server in another through a router with a NAT.
func TestRouterNAT(t *testing.T) {
	router := newRouter(t)
	cfg := netem.Config{Delay: 10 * time.Millisecond}
	clientSpace, port := attach(t, router, "c", "10.99.1.", cfg)
	serverSpace, _ := attach(t, router, "s", "10.99.2.", cfg)
	port.Translate(netip.MustParseAddr("10.99.1.254"))
	server := rig.Inside(serverSpace, func() (*net.UDPConn, error) {
		return net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(10, 99, 2, 2)})
	})
	defer server.Close()
	client := rig.Inside(clientSpace, func() (*net.UDPConn, error) {
		return net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
	})
	defer client.Close()
	go func() {
		buf := make([]byte, 100)
		for {
			_, from, err := server.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			server.WriteToUDPAddrPort([]byte(from.String()), from)
		}
	}()
	ask := func() string {
		t.Helper()
		if _, err := client.Write([]byte("who am I?")); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		client.SetReadDeadline(time.Now().Add(rig.Patience))
		n, err := client.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	start := time.Now()
	if got := ask(); got != "10.99.1.254:49152" {
		t.Errorf("seen from %q", got)
	}
	if took := time.Since(start); took < 40*time.Millisecond {
		t.Errorf("answered after %v, want 40 ms or more", took)
	}
	if got := ask(); got != "10.99.1.254:49152" {
		t.Errorf("seen again from %q", got)
	}
	port.Forget()
	if got := ask(); got != "10.99.1.254:49153" {
		t.Errorf("seen after the mapping was forgotten from %q", got)
	}
}

// TCP through the router brings what was sent, no faster than the link is.
func TestRouterTCP(t *testing.T) {
	const (
		size = 1 << 20
		rate = 20_000_000 // bits per second
	)
	router := newRouter(t)
	server, _ := attach(t, router, "d", "10.99.3.", netem.Config{})
	client, port := attach(t, router, "e", "10.99.4.", netem.Config{Delay: 5 * time.Millisecond, Rate: rate})
	port.Translate(netip.MustParseAddr("10.99.4.254"))
	sent := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(sent)
	listener := rig.Inside(server, func() (net.Listener, error) { return net.Listen("tcp", "10.99.3.2:0") })
	defer listener.Close()
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Write(sent)
	}()
	start := time.Now()
	c := rig.Inside(client, func() (net.Conn, error) {
		return net.DialTimeout("tcp", listener.Addr().String(), rig.Patience)
	})
	defer c.Close()
	c.SetDeadline(time.Now().Add(rig.Patience))
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	if !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came, and not what was sent", len(got))
	}
	const least = time.Duration(size * 8 * int64(time.Second) / rate)
	if took < least {
		t.Errorf("took %v, want %v or more", took, least)
	}
	// On a busy machine, TCP sends a part again.
	if _, down := port.Arrived(); down < size || down > 2*size {
		t.Errorf("%d bytes arrived, want %d and headers", down, size)
	}
}

// A port that blocks a protocol drops it both ways, and nothing else.
func TestBlock(t *testing.T) {
	router := newRouter(t)
	clientSpace, port := attach(t, router, "c", "10.99.1.", netem.Config{})
	serverSpace, _ := attach(t, router, "s", "10.99.2.", netem.Config{})
	at := &net.UDPAddr{IP: net.IPv4(10, 99, 2, 2)}
	udp := rig.Inside(serverSpace, func() (*net.UDPConn, error) { return net.ListenUDP("udp", at) })
	defer udp.Close()
	tcp := rig.Inside(serverSpace, func() (net.Listener, error) { return net.Listen("tcp", "10.99.2.2:0") })
	defer tcp.Close()
	client := rig.Inside(clientSpace, func() (*net.UDPConn, error) {
		return net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(10, 99, 1, 2)})
	})
	defer client.Close()
	// A TCP connection is made after what was sent before over UDP would have arrived.
	connect := func() {
		rig.Inside(clientSpace, func() (net.Conn, error) {
			return net.DialTimeout("tcp", tcp.Addr().String(), rig.Patience)
		}).Close()
	}
	send := func(text string) {
		client.WriteTo([]byte(text), udp.LocalAddr())
		udp.WriteTo([]byte(text), client.LocalAddr())
		connect()
	}
	port.Block(syscall.IPPROTO_UDP)
	send("blocked")
	port.Block(0)
	send("passes")
	for _, c := range []*net.UDPConn{client, udp} {
		buf := make([]byte, 100)
		c.SetReadDeadline(time.Now().Add(rig.Patience))
		if n, _, err := c.ReadFrom(buf); err != nil || string(buf[:n]) != "passes" {
			t.Errorf("%v got %q, %v", c.LocalAddr(), buf[:n], err)
		}
	}
}
